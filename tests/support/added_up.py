"""A delivered bill added up by csv alone, each line to the bill's ten places, to hold our own sums against."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from pipelines.models.build import Builder
from support.ledgers import ask_published

Line = dict[str, Any]
ZERO = Decimal(0)


def exact(value: Any) -> Decimal:
    """A number as the bill keeps it; nothing for a blank or a word."""
    try:
        return Decimal(str(value)).quantize(Decimal("1e-10"), ROUND_HALF_UP)
    except ArithmeticError:
        return ZERO


def added(lines: Iterable[Line], key: Callable[[Line], Any], *amounts: Callable[[Line], Decimal]) -> dict:
    """Line count and sums of `amounts` by key."""
    sums: dict = defaultdict(lambda: [0] + [ZERO] * len(amounts))
    for line in lines:
        found = sums[key(line)]
        found[0] += 1
        for place, amount in enumerate(amounts, 1):
            found[place] += amount(line)
    return {name: tuple(found) for name, found in sums.items()}


def csv_lines(path: Path) -> Iterator[Line]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


def by_charge_type(builder: Builder, month: str) -> dict[str, tuple]:
    """Line count, effective and billed cost by line-item type, as staging has them."""
    with builder.open(["stg_aws__line_item"], month) as engine:
        rows = engine.query(
            "select charge_type, count(*), sum(effective_cost_usd), sum(billed_cost_usd)"
            " from stg_aws__line_item group by 1"
        ).rows()
    return {kind: tuple(sums) for kind, *sums in rows}


def reconciled(builder: Builder) -> dict[str, tuple]:
    """Line count, bill, ledger and their difference by billing month, as published."""
    rows = ask_published(
        builder,
        "select strftime(billing_month, '%Y-%m'), sum(line_count), sum(billed_cost_usd), sum(ledger_cost_usd),"
        " sum(abs(difference_usd)) from mart_invoice_reconciliation_monthly group by 1",
    ).rows()
    return {month: tuple(sums) for month, *sums in rows}


def identity(builder: Builder, number: int, month: str) -> tuple:
    return ask_published(
        builder,
        "select status, left_usd, right_usd from detail_bill_identity_monthly"
        f" where identity = {number} and billing_month = date '{month}-01' and left_usd is not null",
    ).row(0)
