"""A published table of prices per million, checked against its own throughputs and hourly rates."""

import csv
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pipelines.analysis.published_price import PublishedPrice, reconcile
from pipelines.base.console import counted
from pipelines.base.errors import CheckError, UsageError

COLUMNS = ("name", "units_per_second", "price_per_hour_usd", "printed_usd_per_million")
# What a token price counts where units_per_second are output tokens; without the column, the same units.
CONVENTION, CONVENTIONS, TOKENS = "convention", ("output", "total"), ("input_tokens", "output_tokens")


def check_table(path: Path) -> str:
    """The sentence that a table follows from its inputs.

    CheckError with a sentence for each row that does not; UsageError for a file that is not such a table.
    """
    rows = _read(path)
    if differences := reconcile(rows):
        raise CheckError(f"{path.name} does not follow from its inputs. " + " ".join(differences))
    return f"{path.name}: each price follows from its inputs ({counted(len(rows), 'price')})."


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
        raise UsageError(f"{path} has no row below its header; add one row per price.")
    return rows


def _row(path: Path, line: int, row: dict[str, str]) -> PublishedPrice:
    amounts = [_positive(path, line, name, row[name]) for name in COLUMNS[1:]]
    convention = row.get(CONVENTION) or CONVENTIONS[0]
    if convention not in CONVENTIONS:
        raise UsageError(f"{path} line {line}: {CONVENTION} {convention} is unknown; write output or total.")
    if convention == "total":
        read, written = (_positive(path, line, name, row.get(name)) for name in TOKENS)
        amounts.append((read + written) / written)
    return PublishedPrice(row["name"], *amounts)


def _positive(path: Path, line: int, name: str, text: str | None) -> Decimal:
    try:
        amount = Decimal(text or "")
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount <= 0:
        raise UsageError(f"{path} line {line}: {name} {text or 'is empty and'} is not a positive number; correct it.")
    return amount
