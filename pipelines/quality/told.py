"""A check that did not pass, told in one sentence: what, how many rows, where, and the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# A name in a row may be of any length; a difference by charge type is some words.
LONGEST = 240


def first_row(sample: list[dict[str, Any]]) -> str:
    """The first failing row by column name, or nothing."""
    return ", ".join(f"{name}={str(value)[:LONGEST]}" for row in sample[:1] for name, value in row.items())


def warning(check: Mapping[str, Any]) -> str:
    """A published check that did not pass, as the build says it."""
    count = "1 row" if check["unexpected_count"] == 1 else f"{check['unexpected_count']} rows"
    when = f" {check['period']}" if check["period"] else ""
    row = first_row(check["sample"])
    return f"{check['title']}: {count} of {check['table']}{when}{f', first: {row}' if row else ''}"


def doubts(read: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, int, str]]:
    """What was doubtful when the sources were read, as published: they may have changed since."""
    for check in read:
        if not check["passed"]:
            place = " ".join(filter(None, (check["table"], check["period"])))
            rows = [row["doubt"] for row in check["sample"]]
            yield from ((place, check["severity"], check["title"], 1, sentence) for sentence in rows)
