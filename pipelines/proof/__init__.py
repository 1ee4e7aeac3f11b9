"""Arithmetic that somebody will hold against a paper: pure functions of plain numbers."""
