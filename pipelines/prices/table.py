"""A published table of prices per million, checked against the throughputs and hourly rates printed with them."""

from __future__ import annotations

import csv
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pipelines.analysis.published_price import PublishedPrice, reconcile
from pipelines.base.errors import CheckError, UsageError

COLUMNS = ("name", "units_per_second", "price_per_hour_usd", "printed_usd_per_million")


def check_table(path: Path) -> str:
    """That a table follows from its inputs, in words.

    CheckError with a sentence a row that does not; UsageError for a file that is no such table.
    """
    rows = _read(path)
    if differences := reconcile(rows):
        raise CheckError(f"{path.name} is not priced again. " + " ".join(differences))
    return f"All {len(rows)} prices of {path.name} follow from their inputs."


def _read(path: Path) -> list[PublishedPrice]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise UsageError(f"{path} has no column {missing[0]}; a table has {', '.join(COLUMNS)}.")
            rows = [_row(path, number, row) for number, row in enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read as CSV ({error}); give a UTF-8 file.") from None
    if not rows:
        raise UsageError(f"{path} has no row below its header; write one a price.")
    return rows


def _row(path: Path, line: int, row: dict[str, str]) -> PublishedPrice:
    amounts = []
    for name in COLUMNS[1:]:
        try:
            amount = Decimal(row[name] or "")
        except InvalidOperation:
            amount = Decimal(0)
        if not amount.is_finite() or amount <= 0:
            raise UsageError(
                f"{path} line {line}: {name} {row[name] or 'is empty and'} is not a number above zero; fix it."
            )
        amounts.append(amount)
    return PublishedPrice(row["name"], *amounts)
