"""A part of a table: a billing month (2026-07), or what one billing source delivers of it (2026-07/payer-a)."""

from __future__ import annotations


def part_of(month: str, source: str | None = None) -> str:
    """The part of a month, or of what one source delivers of it."""
    return month if source is None else f"{month}/{source}"


def month_of(part: str) -> str:
    """The month of a part."""
    return part.partition("/")[0]


def source_of(part: str) -> str | None:
    """The source of a part; None where it is a whole month."""
    return part.partition("/")[2] or None


def is_within(part: str, outer: str) -> bool:
    """Whether a part is another one or lies in it."""
    return part == outer or part.startswith(f"{outer}/")


def shown_part(part: str) -> str:
    """A part in words."""
    month, source = month_of(part), source_of(part)
    return f"{month} of {source}" if source else month


def file_name(part: str) -> str:
    """A part in the name of a file; no source has an exclamation mark in its name."""
    return part.replace("/", "!")
