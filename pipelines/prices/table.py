"""A published table of serving prices or break-evens, checked against the inputs printed with it."""

import csv
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from pipelines.analysis.published_price import PublishedPrice, active_capacity, break_even, reconcile
from pipelines.base.errors import CheckError, UsageError, counted
from pipelines.prices.book import amount_of

# Price per million by throughput and hourly rate.
COLUMNS = ("name", "units_per_second", "price_per_hour_usd", "printed_usd_per_million")
# Tables of other figures, by their columns.
FIGURES = {
    ("name", "usd_per_month", "usd_per_million", "printed_million_tokens_per_month"): break_even,
    ("name", "active_windows", "model_units", "usd_per_unit_minute", "printed_usd"): active_capacity,
}
# What a token price counts where units_per_second are output tokens; without the column, the same units.
CONVENTION, CONVENTIONS, TOKENS = "convention", ("output", "total"), ("input_tokens", "output_tokens")
# The machine of a row, whose rate is then compared with the price book.
MACHINE = "instance_type"
Listed = Callable[[str], Decimal]


def check_table(path: Path, listed: Listed) -> str:
    """The sentence that a table follows from its inputs; `listed` gives the list price of an instance type.

    CheckError with a sentence for each row that does not; UsageError for a file that is not such a table.
    """
    rows = _read(path)
    head = tuple(rows[0][1])
    kind = next((columns for columns in FIGURES if {*columns} <= {*head}), COLUMNS)
    if missing := [name for name in kind if name not in head]:
        raise UsageError(f"{path} has no column {missing[0]}; a table has {', '.join(COLUMNS)}.")
    if kind in FIGURES:
        amounts = [[_positive(path, line, name, row[name]) for name in kind[1:]] for line, row in rows]
        figures = [FIGURES[kind](row["name"], *values) for (_, row), values in zip(rows, amounts, strict=True)]
        differences = [figure.difference for figure in figures if not figure.follows]
    else:
        differences = reconcile([_price(path, line, row, listed) for line, row in rows])
    if differences:
        raise CheckError(f"{path.name} does not follow from its inputs. " + " ".join(differences))
    noun = "price" if kind == COLUMNS else "figure"
    return f"{path.name}: each {noun} follows from its inputs ({counted(len(rows), noun)})."


def _read(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The rows below the header, each with its line."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = [*enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read as CSV ({error}); give a UTF-8 file.") from None
    if not rows:
        raise UsageError(f"{path} has no row below its header; add one row per price.")
    return rows


def _price(path: Path, line: int, row: dict[str, str], listed: Listed) -> PublishedPrice:
    speed, rate, printed = (_positive(path, line, name, row[name]) for name in COLUMNS[1:])
    convention = row.get(CONVENTION) or CONVENTIONS[0]
    if convention not in CONVENTIONS:
        raise UsageError(f"{path} line {line}: {CONVENTION} {convention} is unknown; write output or total.")
    ratio = Decimal(1)
    if convention == "total":
        read, written = (_positive(path, line, name, row.get(name)) for name in TOKENS)
        ratio = (read + written) / written
    machine = row.get(MACHINE)
    return PublishedPrice(row["name"], speed, rate, printed, ratio, listed(machine) if machine else None)


def _positive(path: Path, line: int, name: str, text: str | None) -> Decimal:
    if not (amount := amount_of(text)):
        raise UsageError(f"{path} line {line}: {name} {text or 'is empty and'} is not a positive number; correct it.")
    return amount
