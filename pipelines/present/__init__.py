"""Turns rows of the marts into pages, PDF files and terminal tables."""
