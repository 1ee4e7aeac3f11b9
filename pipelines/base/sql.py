"""Literals and identifiers of SQL."""

from __future__ import annotations

from pathlib import Path

NUL = "\0"


def quoted(name: str | Path) -> str:
    """A string literal."""
    text = "'" + str(name).replace("'", "''") + "'"
    # A query ends at a NUL, wherever it is.
    return f"""({text.replace(NUL, "' || chr(0) || '")})""" if NUL in text else text


def identifier(name: str) -> str:
    """A quoted identifier: the names of columns come from delivered files and may contain anything."""
    return '"' + name.replace('"', '""') + '"'
