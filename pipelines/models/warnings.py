"""A check that did not pass, in sentences: what failed, rows and dollars, an example, what to do, the owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract

# A name in a row may be of any length; a difference by charge type is some words.
LONGEST = 240
# As many warnings as a build prints one by one.
WARNINGS = 5
# The column of a sample row that is a sentence already; "doubt" in publications of older versions.
_SENTENCES = ("warning", "doubt")
# Columns of an example.
_SHOWN = 10


def failed_checks(checks: Sequence[Mapping[str, Any]], severity: str) -> list[dict[str, Any]]:
    """Published checks of a severity that did not pass, one per table and check over all months, most rows first."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for check in checks:
        if check["passed"] or check["severity"] != severity:
            continue
        row = merged.setdefault(
            (check["table"], check["check"]),
            {
                "key": check["table"],
                "table": check["table"].rpartition("/")[2],
                "check": check["check"],
                "title": check.get("title") or check["check"].replace("_", " "),
                "periods": [],
                "unexpected_count": 0,
                "sample": [],
                "totals": {},
            },
        )
        row["periods"] += [check["period"]] if check["period"] else []
        row["unexpected_count"] += check["unexpected_count"]
        row["sample"] += check["sample"]
        for currency, amount in check.get("totals", {}).items():
            row["totals"][currency] = row["totals"].get(currency, 0) + Decimal(amount)
    return sorted(merged.values(), key=lambda row: (-row["unexpected_count"], row["table"], row["check"]))


def check_counts(checks: Iterable[Mapping[str, Any]], *severities: str) -> tuple[int, int]:
    """How many published checks passed, and all of them; those of a table's months are one."""
    counted = [check for check in checks if not severities or check["severity"] in severities]
    failed = {(check["table"], check["check"]) for check in counted if not check["passed"]}
    every = {(check["table"], check["check"]) for check in counted}
    return len(every) - len(failed), len(every)


def example(table: str, sample: Sequence[Mapping[str, Any]]) -> str:
    """The first failing row in words: its key, its amounts, then what else it has; empty without one."""
    for row in sample[:1]:
        # A warning of a reader is a sentence already.
        if text := next((row[name] for name in _SENTENCES if name in row), None):
            return str(text)[:LONGEST]
        key = load_contract(table).key if _is_model(table) else ()
        known = {name: value for name, value in row.items() if value is not None}
        if any(name.endswith("_usd") for name in known):
            # The amounts name it.
            known.pop("billing_currency", None)
        order = sorted(known, key=lambda name: (name not in key, not name.endswith("_usd")))
        return ", ".join(_cell(name, known[name], row) for name in order[:_SHOWN])
    return ""


def sentence(check: Mapping[str, Any], owners: Mapping[str, str] | None = None) -> str:
    """A published check that did not pass: its rows and dollars, an example, what to do, the owner of its table.

    `owners` are those of the configuration, by the owner that contracts name.
    """
    table, count = check.get("key", check["table"]), check["unexpected_count"]
    months = sorted(check["periods"] if "periods" in check else filter(None, [check["period"]]))
    where = " ".join(filter(None, (table.rpartition("/")[2], " to ".join(dict.fromkeys(months[:1] + months[-1:])))))
    shown = example(table, check["sample"])
    total = " and ".join(_money(amount, currency) for currency, amount in check.get("totals", {}).items())
    found = f"{check['title']}: {count} {'row' if count == 1 else 'rows'} of {where}"
    found += f"{f', {total} in all' if total and count > 1 else ''}{f', for example {shown}' if shown else ''}"
    return f"{found.rstrip('.')}.{advice(table, check.get('check', ''), owners)}"


def advice(table: str, name: str, owners: Mapping[str, str] | None = None) -> str:
    """What to do, and who owns the table, as of the present contract; empty for a source."""
    if not _is_model(table):
        return ""
    contract = load_contract(table)
    fix = next((check.fix for check in contract.checks if check.name == name), "")
    return f"{f' {fix}' if fix else ''} Owner: {(owners or {}).get(contract.owner, contract.owner)}."


def warnings(warned: Sequence[Mapping[str, Any]], owners: Mapping[str, str] | None = None) -> list[str]:
    """The first of the published checks that did not pass, and how to see the others."""
    more = len(warned) - WARNINGS
    rest = [f"And {more} more warnings; `trainledger check` lists every one."] if more > 0 else []
    return [f"Warning: {sentence(check, owners)}" for check in warned[:WARNINGS]] + rest


def reading_warnings(read: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, int, str]]:
    """The warnings of the readers of sources, as published: the sources may have changed since."""
    for check in read:
        if not check["passed"]:
            table = " ".join(filter(None, (check["table"], check["period"])))
            rows = [next(row[name] for name in _SENTENCES if name in row) for row in check["sample"]]
            yield from ((table, check["severity"], check["title"], 1, text) for text in rows)


def _is_model(table: str) -> bool:
    return table.rpartition("/")[2] in load_catalog()


def _cell(name: str, value: Any, row: Mapping[str, Any]) -> str:
    if name.endswith("_usd"):
        value = _money(value, row.get("billing_currency") or "USD")
    label = name.removesuffix("_id").removesuffix("_usd").replace("_", " ")
    return f"{label} {str(value)[:LONGEST]}"


def _money(amount: Any, currency: str) -> str:
    symbol = "$" if currency == "USD" else f"{currency} "
    return f"{'-' if float(amount) < 0 else ''}{symbol}{abs(float(amount)):,.2f}"
