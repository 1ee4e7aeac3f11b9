"""Writes published billing months as FOCUS 1.2 Cost and Usage datasets, one Parquet file and one csv a month."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
# Older publications have none.
MONTHS = "detail_billing_month"


def export_focus(settings: Settings, month: str | None, out: Path, console: Console) -> None:
    """Write the published months, or one of them as YYYY-MM, below `out`, and print what they come to."""
    _refuse_file(out)
    # Whatever engine builds the tables: one pass over a month needs no cluster.
    place = settings.warehouse.model_copy(update={"engine": "duckdb"})
    warehouse = Warehouse(settings.model_copy(update={"warehouse": place}))
    published = published_of(warehouse)
    # The lines the publication was made from, also where a newer delivery waits to be built.
    seen = warehouse.as_published(published)
    months = _chosen(published, month)
    with console.steps(len(months)) as steps:
        for period in months:
            _export_month(seen, period, out, console, is_known=f"detail/{MONTHS}" in published.tables)
            steps.step(f"focus {period}")
    console.say(f"Wrote FOCUS 1.2 of publication {published.number} to {out / FOLDER}.")


def _export_month(warehouse: Warehouse, period: str, out: Path, console: Console, is_known: bool) -> None:
    """Write a month below `out`; its two files appear whole, replacing those of an earlier export."""
    folder = below(out / FOLDER, f"billing_period={period}", error=UsageError)
    with (
        Builder(warehouse).open([*CHARGES, "ref_service", *[MONTHS] * is_known], period) as engine,
        _scratch(folder) as (exact, parquet, csv),
    ):
        assert isinstance(engine, DuckDBEngine)
        columns = load_contract(f"staging/{CHARGES[0]}").columns
        # The bill is read once; both files are made from what it gave.
        engine.write(" union all ".join(f"select {_typed(columns)} from {charges}" for charges in CHARGES), exact)
        warehouse.pseudonyms.file(exact)
        engine.view("charge", [exact])
        engine.write(f"select {', '.join(map(_in_parquet, columns))} from charge", parquet)
        engine.write_csv(f"select {', '.join(map(_in_csv, columns))} from charge", csv)
        _print_totals(engine, period, console)
        if is_known:
            _print_missing(engine, period, console)
        parquet.replace(folder / f"{NAME}.parquet")
        csv.replace(folder / f"{NAME}.csv")


def _chosen(published: Publication, month: str | None) -> list[str]:
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


def _print_totals(engine: DuckDBEngine, period: str, console: Console) -> None:
    """The totals of a month by currency, and the services that ref_service.csv lacks, which count as Other.

    FOCUS takes credits off EffectiveCost, our marts do not (docs/focus-export.md), so it is called by its own name.
    """
    sums = 'count(*), sum("BilledCost"), sum("EffectiveCost")'
    rows = engine.query(f'select "BillingCurrency", {sums} from charge group by 1 order by 1').rows()
    count = sum(row[1] for row in rows)
    for currency, _, billed, effective in rows:
        console.say(
            f"{period}  {count:>12,} charges  "
            f"BilledCost {billed:,.2f} {currency}  EffectiveCost {effective:,.2f} {currency}, credits taken off"
        )
    unlisted = engine.query(
        'select distinct "ServiceName" from charge where "ServiceCategory" = \'Other\' '
        'and "ServiceName" not in (select service_name from ref_service) order by 1'
    ).rows()
    if unlisted:
        names = ", ".join(name for (name,) in unlisted)
        console.note(f"Warning: {period}: exported as Other, as ref_service.csv lacks them: {names}.")


def _print_missing(engine: DuckDBEngine, period: str, console: Console) -> None:
    """The commitment fees of the month whose use the bill does not show: no EffectiveCost has them."""
    for currency, missing in engine.query(
        f"select distinct currency, month_unallocated_fee_usd from {MONTHS} "
        f"where month_unallocated_fee_usd > 0 and strftime(billing_month, '%Y-%m') = '{period}' order by 1"
    ).rows():
        console.note(
            f"Warning: {period}: EffectiveCost is partial: {missing:,.2f} {currency} of commitment fees are billed "
            "without the usage they covered."
        )


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


@contextmanager
def _scratch(folder: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Three files to write to, gone afterwards unless they were moved."""
    folder.mkdir(parents=True, exist_ok=True)
    forms = ("exact.parquet", "parquet", "csv")
    exact, parquet, csv = (below(folder, f".{os.getpid()}.{form}", error=UsageError) for form in forms)
    try:
        yield exact, parquet, csv
    finally:
        for file in (exact, parquet, csv):
            file.unlink(missing_ok=True)
