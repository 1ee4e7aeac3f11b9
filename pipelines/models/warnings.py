"""Checks that did not pass: counted in one way, and in sentences.

A sentence states what failed, rows and dollars, an example, what to do and the owner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from textwrap import shorten
from typing import Any

from pipelines.base.dates import month_spans
from pipelines.base.errors import counted
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import Contract, load_contract
from pipelines.models.written import CURRENCIES
from pipelines.warehouse.part import month_of

# A name in a row may be of any length; a difference by charge type is some words.
LONGEST = 240
# As many warnings as a build prints one by one.
WARNINGS = 5
# The column of a sample row that is a sentence already; "doubt" in publications of older versions.
SENTENCES = ("warning", "doubt")
# By the end of a check's name: what must hold, as its title has it, and what failed.
_FAILURES = {
    "_not_null": (" is never null", " is null"),
    "_not_negative": (" is never negative", " is negative"),
    "_in_set": (" is one of ", " is not one of "),
    "_between": (" lies between ", " does not lie between "),
}
_DECIMAL = re.compile(r"-?\d+\.\d{3,}")
_MONTH = re.compile(r"(\d{4}-\d\d)-01")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(?::00)?(:[\d.]+)?")
# Columns of an example.
_SHOWN = 10


def failed_checks(checks: Sequence[Mapping[str, Any]], severity: str) -> list[dict[str, Any]]:
    """Published checks of a severity that failed, one per table and check over all months.

    Those of the most dollars come first, then those of the most rows. Their number is the number of warnings (or
    errors) everywhere. Each has `table` (its name), `check`, `title`, `periods`, `unexpected_count`, `totals` in
    dollars by currency, `sample`, `rows`, the sample in words and rounded by label, `noun`, what one of them is, and
    `example`, its first row, and `advice`.
    """
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for check in checks:
        if check["passed"] or check["severity"] != severity:
            continue
        row = merged.setdefault(
            (check["table"], check["check"]),
            {
                "table": check["table"].rpartition("/")[2],
                "check": check["check"],
                "title": _failure(check.get("title") or check["check"].replace("_", " "), check["check"]),
                "periods": [],
                "unexpected_count": 0,
                "totals": {},
                "sample": [],
            },
        )
        # Several sources may each have a part of one month.
        if (period := check["period"]) and month_of(period) not in row["periods"]:
            row["periods"].append(month_of(period))
        row["unexpected_count"] += check["unexpected_count"]
        row["sample"] += check["sample"]
        for currency, amount in check.get("totals", {}).items():
            row["totals"][currency] = row["totals"].get(currency, Decimal(0)) + Decimal(amount)
    for row in merged.values():
        row["example"] = example(row["table"], row["sample"])
        row["noun"] = "warning" if any(name in of for of in row["sample"] for name in SENTENCES) else "row"
        row["rows"] = [{_label(name): _text(name, value, of) for name, value in of.items()} for of in row["sample"]]
        row["advice"] = advice(row["table"], row["check"]).strip()
    return sorted(merged.values(), key=_rank)


def check_counts(checks: Iterable[Mapping[str, Any]], *severities: str) -> tuple[int, int]:
    """How many published checks passed, and all of them; those of a table's months are one."""
    counted = [check for check in checks if not severities or check["severity"] in severities]
    failed = {(check["table"], check["check"]) for check in counted if not check["passed"]}
    every = {(check["table"], check["check"]) for check in counted}
    return len(every) - len(failed), len(every)


def _rank(row: Mapping[str, Any]) -> tuple[Decimal, int, str, str]:
    dollars = max(map(abs, row["totals"].values()), default=Decimal(0))
    return -dollars, -row["unexpected_count"], row["table"], row["check"]


def example(table: str, sample: Sequence[Mapping[str, Any]]) -> str:
    """The first failing row in words: its key, its amounts, then what else it has; empty without one."""
    for row in sample[:1]:
        # A warning of a reader is a sentence already.
        if text := next((row[name] for name in SENTENCES if name in row), None):
            return shorten(str(text), 2 * LONGEST, placeholder=" …")
        contract = _contract(table)
        key = contract.key if contract else ()
        known = {name: value for name, value in row.items() if value not in (None, "")}
        if any(name.endswith("_usd") for name in known):
            # The amounts name it.
            known = {name: value for name, value in known.items() if name not in CURRENCIES}
        order = sorted(known, key=lambda name: (name not in key, not name.endswith("_usd")))
        return ", ".join(f"{_label(name)} {_cut(_text(name, known[name], row))}" for name in order[:_SHOWN])
    return ""


def _cut(text: str) -> str:
    """A text that is not too long; of a list the first names in one piece, and how many more there are."""
    if len(text) <= LONGEST:
        return text
    kept = text[: LONGEST + 2].rpartition(", ")[0]
    return f"{kept} and {text.count(', ') - kept.count(', ')} more" if kept else text[:LONGEST]


def sentence(check: Mapping[str, Any], owners: Mapping[str, str] | None = None) -> str:
    """A check that did not pass: its rows and dollars, an example, what to do, the owner of its table.

    `check` is a published one, with its `period`, or one of `failed_checks`, with its `periods`. `owners` are those
    of the configuration, by the owner that contracts name.
    """
    table, count = check["table"], check["unexpected_count"]
    where = _where(check)
    shown = example(table, check["sample"])
    if any(name in row for row in check["sample"][:1] for name in SENTENCES):
        more = f" And {count - 1} more of this source; `trainledger check` lists each." if count > 1 else ""
        return f"{where}: {shown}{more}"
    total = " and ".join(
        _money(amount, currency) for currency, amount in check.get("totals", {}).items() if float(amount)
    )
    found = f"{_failure(check['title'], check.get('check', ''))}: {count} {'row' if count == 1 else 'rows'} of {where}"
    found += f"{f', {total} in all' if total and count > 1 else ''}{f', for example {shown}' if shown else ''}"
    return f"{found.rstrip('.')}.{advice(table, check.get('check', ''), owners)}"


def _failure(title: str, name: str) -> str:
    """What failed, of a check whose title is what must hold."""
    for suffix, (rule, failure) in _FAILURES.items():
        if name.removesuffix("_warn").endswith(suffix):
            return title.replace(rule, failure)
    return title


def advice(table: str, name: str, owners: Mapping[str, str] | None = None) -> str:
    """What to do, and who owns the table, as of the present contract; empty for a source."""
    contract = _contract(table)
    if not contract:
        return ""
    fix = next((check.fix for check in contract.checks if check.name == name), "")
    return f"{f' {fix}' if fix else ''} Owner: {(owners or {}).get(contract.owner, contract.owner)}."


def warnings(warned: Sequence[Mapping[str, Any]], owners: Mapping[str, str] | None = None) -> list[str]:
    """The first of `failed_checks`, and how to see the others."""
    more = len(warned) - WARNINGS
    rest = [f"And {counted(more, 'more warning')}; `trainledger check` lists every one."] if more > 0 else []
    return [f"Warning: {sentence(check, owners)}" for check in warned[:WARNINGS]] + rest


def sentences(check: Mapping[str, Any], owners: Mapping[str, str] | None = None) -> list[str]:
    """One of `failed_checks` in full: each sentence of a reader, else the one of `sentence`."""
    texts = [row[name] for row in check["sample"] for name in SENTENCES if name in row]
    if not texts:
        return [sentence(check, owners)]
    more = check["unexpected_count"] - len(texts)
    return [f"{_where(check)}: {text}" for text in [*texts, *([f"and {more} more."] if more > 0 else [])]]


def _where(check: Mapping[str, Any]) -> str:
    """The table of a check and its months, those in a row as the first and the last."""
    periods = check["periods"] if "periods" in check else filter(None, [check["period"]])
    return " ".join([check["table"].rpartition("/")[2], month_spans(map(month_of, periods))]).rstrip()


def _contract(table: str) -> Contract | None:
    """The contract of a table by its name or key; None for a source."""
    catalog, name = load_catalog(), table.rpartition("/")[2]
    return load_contract(catalog[name].key) if name in catalog else None


def _label(name: str) -> str:
    return name.removesuffix("_id").removesuffix("_usd").replace("_", " ")


def _text(name: str, value: Any, row: Mapping[str, Any]) -> str:
    if value is None:
        return "unknown"
    if name.endswith("_usd"):
        return _money(value, next((row[each] for each in CURRENCIES if row.get(each)), "USD"))
    # Months are their first day, times are UTC.
    if name.endswith("_month") and (month := _MONTH.fullmatch(str(value))):
        return month[1]
    if name.endswith("_at") and (moment := _MOMENT.fullmatch(str(value))):
        return f"{moment[1]} {moment[2]}{moment[3] or ''} UTC"
    if name.endswith("_tokens") or name.startswith("tokens_"):
        return f"{Decimal(str(value)).normalize():,f}"
    # A decimal is text in a sample.
    if name.endswith("_hours") or isinstance(value, float) or _DECIMAL.fullmatch(str(value)):
        return f"{float(value):,.2f}"
    return str(value)


def _money(amount: Any, currency: str) -> str:
    symbol = "$" if currency == "USD" else f"{currency} "
    # As pages and sentences of marts write it.
    sign = "\u2212" if float(amount) < 0 else ""
    return f"{sign}{symbol}{abs(float(amount)):,.2f}"
