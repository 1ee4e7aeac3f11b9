"""Exports of published data in other formats."""
