"""Writes published billing months as FOCUS 1.2 Cost and Usage datasets, one Parquet file and one csv a month."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.base.paths import below
from pipelines.config.settings import Settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.build import Builder
from pipelines.models.contract import Column, load_contract
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.csv_text import FORMULA
from pipelines.warehouse.lake import Publication

# What cost and usage reports become, and what came as FOCUS.
CHARGES = ("stg_aws__focus_charge", "stg_aws__focus_delivered")
FOLDER = "focus-1.2"
NAME = "cost_and_usage"


@dataclass(frozen=True)
class Exported:
    """One month as it was written; totals are (BilledCost, EffectiveCost) by billing currency.

    FOCUS takes credits off EffectiveCost, our marts do not (docs/focus-export.md), so it is called by its own name.

    `unlisted` are services that sql/reference/ref_service.csv lacks, which therefore count as Other.
    """

    period: str
    folder: Path
    row_count: int
    totals: dict[str, tuple[Decimal, Decimal]]
    unlisted: tuple[str, ...]


def export_focus(settings: Settings, month: str | None, out: Path, console: Console) -> None:
    """Write the published months, or one of them as YYYY-MM, below `out`, and say what they come to."""
    _refuse_file(out)
    # Whatever engine builds the tables: one pass over a month needs no cluster.
    place = settings.warehouse.model_copy(update={"engine": "duckdb"})
    warehouse = Warehouse(settings.model_copy(update={"warehouse": place}))
    published = published_of(warehouse)
    # The lines the publication was made from, also where a newer delivery waits to be built.
    seen = warehouse.as_published(published)
    months = _asked(published, month)
    with console.steps(len(months)) as steps:
        for period in months:
            exported = export_month(seen, period, out)
            steps.step(f"focus {period}")
            _say(exported, console)
    console.say(f"Wrote FOCUS 1.2 of publication {published.number} to {out / FOLDER}.")


def export_month(warehouse: Warehouse, period: str, out: Path) -> Exported:
    """Write a month below `out`; its two files appear whole, replacing those of an earlier export."""
    folder = below(out / FOLDER, f"billing_period={period}", error=UsageError)
    with _open(warehouse, period) as engine, _scratch(folder) as (exact, parquet, csv):
        columns = load_contract(f"staging/{CHARGES[0]}").columns
        # The bill is read once; both files are made from what it gave.
        engine.write(" union all ".join(f"select {_typed(columns)} from {charges}" for charges in CHARGES), exact)
        warehouse.pseudonyms.file(exact)
        engine.view("charge", [exact])
        engine.write(f"select {', '.join(map(_in_parquet, columns))} from charge", parquet)
        engine.write_csv(f"select {', '.join(map(_in_csv, columns))} from charge", csv)
        exported = _exported(engine, period, folder)
        parquet.replace(folder / f"{NAME}.parquet")
        csv.replace(folder / f"{NAME}.csv")
    return exported


def _open(warehouse: Warehouse, period: str) -> DuckDBEngine:
    engine = Builder(warehouse).open([*CHARGES, "ref_service"], period)
    assert isinstance(engine, DuckDBEngine)
    return engine


def _asked(published: Publication, month: str | None) -> list[str]:
    months = sorted({str(delivery["billing_period"]) for delivery in published.inputs["deliveries"]})
    if month is None:
        return months
    if month not in months:
        raise UsageError(f"--month {month} is not published; give one of {', '.join(months)}, or none for all.")
    return [month]


def _refuse_file(out: Path) -> None:
    for place in (out / FOLDER, out, *out.parents):
        if place.exists():
            if not place.is_dir():
                raise UsageError(f"{place} is a file; choose a folder with --out.")
            return


def _say(exported: Exported, console: Console) -> None:
    for currency, (billed, effective) in exported.totals.items():
        console.say(
            f"{exported.period}  {exported.row_count:>12,} charges  "
            f"BilledCost {billed:,.2f} {currency}  EffectiveCost {effective:,.2f} {currency}, credits taken off"
        )
    if exported.unlisted:
        names = ", ".join(exported.unlisted)
        console.note(f"Warning: {exported.period}: exported as Other, as ref_service.csv lacks them: {names}.")


def _typed(columns: Sequence[Column]) -> str:
    return ", ".join(f'cast("{column.name}" as {column.type}) as "{column.name}"' for column in columns)


def _in_parquet(column: Column) -> str:
    """As AWS writes FOCUS: numbers are doubles, times instants; key-value columns are JSON text, as validators read."""
    if column.type.startswith("DECIMAL"):
        return f'cast("{column.name}" as double) as "{column.name}"'
    if column.type == "TIMESTAMP":
        return f'timezone(\'UTC\', "{column.name}") as "{column.name}"'
    return f'"{column.name}"'


def _in_csv(column: Column) -> str:
    """Amounts with all their places, times with their zone, exponents as FOCUS writes them, text as no formula."""
    if column.type == "TIMESTAMP":
        return f'strftime("{column.name}", \'%Y-%m-%dT%H:%M:%SZ\') as "{column.name}"'
    if column.type == "DOUBLE":
        return f'upper(cast("{column.name}" as varchar)) as "{column.name}"'
    if column.type == "VARCHAR":
        # What spreadsheets run, they run of a csv; the Parquet file has the text as it was.
        return f"regexp_replace(\"{column.name}\", '{FORMULA}', '''\\0') as \"{column.name}\""
    return f'"{column.name}"'


def _exported(engine: DuckDBEngine, period: str, folder: Path) -> Exported:
    rows = engine.query(
        'select "BillingCurrency", count(*), sum("BilledCost"), sum("EffectiveCost") from charge group by 1 order by 1'
    ).rows()
    unlisted = engine.query(
        'select distinct "ServiceName" from charge where "ServiceCategory" = \'Other\' '
        'and "ServiceName" not in (select service_name from ref_service) order by 1'
    ).rows()
    totals = {currency: (billed, effective) for currency, _, billed, effective in rows}
    return Exported(period, folder, sum(row[1] for row in rows), totals, tuple(name for (name,) in unlisted))


@contextmanager
def _scratch(folder: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Three files to write to, gone afterwards unless they were moved."""
    folder.mkdir(parents=True, exist_ok=True)
    exact, parquet, csv = (
        below(folder, f".{os.getpid()}.{form}", error=UsageError) for form in ("exact.parquet", "parquet", "csv")
    )
    files = (exact, parquet, csv)
    try:
        yield files
    finally:
        for file in files:
            file.unlink(missing_ok=True)
