"""Checks that did not pass, each as one sentence: what, how many rows, where, and the first of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

# A name in a row may be of any length; a difference by charge type is some words.
LONGEST = 240
# As many warnings as a build prints one by one.
WARNINGS = 5
# The column of a sample row that is a sentence already; "doubt" in publications of older versions.
_SENTENCES = ("warning", "doubt")


def first_row(sample: list[dict[str, Any]]) -> str:
    """The known values of the first failing row, in words, or nothing."""
    row = {name: value for name, value in (sample[0] if sample else {}).items() if value is not None}
    currency = row.get("billing_currency", "USD")
    if any(name.endswith("_usd") for name in row):
        row.pop("billing_currency", None)
    return ", ".join(_cell(name, str(value)[:LONGEST], currency) for name, value in row.items())


def _cell(name: str, text: str, currency: str) -> str:
    if name in _SENTENCES:
        return text
    words = name.removesuffix("_usd").replace("_", " ")
    if name.endswith("_usd") and re.fullmatch(r"-?\d+(\.\d+)?", text):
        amount = Decimal(text)
        # Below a cent every digit counts.
        return f"{words} {f'{amount:,.2f}' if not amount or abs(amount) >= Decimal('0.005') else amount} {currency}"
    return f"{words} {text}"


def warnings(warned: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first of the published checks that did not pass, and how to see the others."""
    more = len(warned) - WARNINGS
    rest = [f"And {more} more warnings; `trainledger check` lists every one."] if more > 0 else []
    return [f"Warning: {_warning(check).rstrip('.')}." for check in warned[:WARNINGS]] + rest


def _warning(check: Mapping[str, Any]) -> str:
    """A published check that did not pass, as a build prints it."""
    count = "1 row" if check["unexpected_count"] == 1 else f"{check['unexpected_count']} rows"
    when = f" {check['period']}" if check["period"] else ""
    row = first_row(check["sample"])
    owner = _owner(check["table"])
    owned = f"; owner {owner}" if owner else ""
    return f"{check['title']}: {count} of {check['table']}{when}{f', first: {row}' if row else ''}{owned}"


def _owner(table: str) -> str:
    """Who answers for a table; empty for a raw table, whose warnings concern its source."""
    from pipelines.models.contract import contract_paths, load_contract

    return load_contract(table).owner if table in contract_paths() else ""


def reading_warnings(read: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, int, str]]:
    """The warnings of reading the sources, as published: the sources may have changed since."""
    for check in read:
        if not check["passed"]:
            where = " ".join(filter(None, (check["table"], check["period"])))
            rows = [next(row[name] for name in _SENTENCES if name in row) for row in check["sample"]]
            yield from ((where, check["severity"], check["title"], 1, sentence) for sentence in rows)
