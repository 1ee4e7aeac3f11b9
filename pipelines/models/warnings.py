"""A check that did not pass, told in one sentence: what, how many rows, where, and the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

# A name in a row may be of any length; a difference by charge type is some words.
LONGEST = 240


def first_row(sample: list[dict[str, Any]]) -> str:
    """The first failing row by column name, or nothing."""
    cells = ((name, str(value)[:LONGEST]) for row in sample[:1] for name, value in row.items())
    # A doubt is a sentence already.
    return ", ".join(told if name == "doubt" else f"{name}={told}" for name, told in cells)


# As many warnings as a build prints one by one.
WARNINGS = 5


def warnings(warned: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first of the published checks that did not pass, and where the others are."""
    more = len(warned) - WARNINGS
    rest = [f"And {more} more warnings; `trainledger check` lists every one."] if more > 0 else []
    return [f"Warning: {_warning(check).rstrip('.')}." for check in warned[:WARNINGS]] + rest


def _warning(check: Mapping[str, Any]) -> str:
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
