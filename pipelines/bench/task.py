"""The pieces of work `make bench` measures or needs, each run as a process of its own."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.bench import accounts

CSV = "legacy"


def main() -> None:
    """Run one task at a place: `python -m pipelines.bench.task TASK PLACE [--lines N]`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("place", type=Path)
    parser.add_argument("--lines", type=int, default=0)
    arguments = parser.parse_args()
    TASKS[arguments.task](arguments.place, arguments.lines)


def generate(place: Path, lines: int) -> None:
    """A bill of so many lines with its runs and configuration."""
    from pipelines.bench.bill import write_bench_bill

    write_bench_bill(place, lines)


def generate_runs(place: Path, lines: int) -> None:
    """A bill of so many lines of a company that does little but train, with its runs."""
    from pipelines.bench.bill import write_bench_bill
    from pipelines.bench.runs import LABORATORY

    write_bench_bill(place, lines, shape=LABORATORY)


def generate_year(place: Path, lines: int) -> None:
    """Twelve bills of that company, of so many lines together, with their runs."""
    from pipelines.bench.bill import FEWEST_LINES, write_bench_bill
    from pipelines.bench.runs import LABORATORY

    # A small month by chance has machines that run long; fewer hours leave its other lines room.
    shape = replace(LABORATORY, accelerated=LABORATORY.accelerated * 0.6)
    for number, month in enumerate(_months(12), start=1):
        write_bench_bill(place, max(lines // 12, FEWEST_LINES), month, seed=number, shape=shape)


def generate_months(place: Path, months: int) -> None:
    """So many bills, each as small as they come, with their runs."""
    from pipelines.bench.bill import FEWEST_LINES, write_bench_bill

    for number, month in enumerate(_months(months), start=1):
        write_bench_bill(place, FEWEST_LINES, month, seed=number)


def _months(count: int) -> list[str]:
    """So many months up to July 2026, as YYYY-MM: records of times to come would be set aside."""
    last = 2026 * 12 + 6
    return [f"{month // 12}-{month % 12 + 1:02}" for month in range(last - count + 1, last + 1)]


def generate_csv(place: Path, lines: int) -> None:
    """The same bill once more as a legacy report."""
    from pipelines.bench.legacy import write_legacy_bill

    generate(place, lines)
    month, folder = current_delivery(place)
    write_legacy_bill(sorted(folder.glob("*.parquet")), place / CSV, month)


def restate(place: Path, lines: int) -> None:
    """The bill delivered once more, some costs changed."""
    from pipelines.bench import bill as bench_bill

    bench_bill.restate(place)


def add_day(place: Path, lines: int) -> None:
    """Deliver the newest month again, with this many further lines."""
    from pipelines.bench import bill as bench_bill

    bench_bill.add_day(place, lines)


def bare_scan(place: Path, lines: int) -> None:
    """Read and aggregate every column that a build reads of the bill, the plain way."""
    from pipelines.engine.duckdb import DuckDBEngine
    from pipelines.ingest.billing.columns import tag_containers

    files = sorted(current_delivery(place)[1].glob("*.parquet"))
    present = set(pq.read_schema(files[0]).names)
    parts = ["count(*) as line_count", *(aggregate for name, aggregate in _needed() if name in present)]
    parts += [f"sum(cardinality({name})) as {name}" for name in tag_containers() if name in present]
    with DuckDBEngine() as engine:
        engine.view("bill", files)
        engine.query(
            "select cast(line_item_usage_start_date as date) as day, line_item_usage_account_id as account, "
            f"line_item_line_item_type as type, line_item_product_code as product, {', '.join(parts)} "
            "from bill group by all"
        )


def exact_scan(place: Path, lines: int) -> None:
    """The least that any ledger of the bill does: its columns read, the numbers added exactly and the texts hashed."""
    from pipelines.engine.duckdb import DuckDBEngine

    files = sorted(current_delivery(place)[1].glob("*.parquet"))
    present = set(pq.read_schema(files[0]).names)
    numbers, texts = [], []
    for name, aggregate in _needed():
        if name in present:
            (numbers if aggregate.startswith("sum") else texts).append(name)
    sums = ", ".join(f"sum(cast({name} as decimal(20, 10)))" for name in numbers)
    with DuckDBEngine() as engine:
        engine.view("bill", files)
        engine.query(f"select count(*), bit_xor(hash({', '.join(texts)})), {sums} from bill")


def ingest_csv(place: Path, lines: int) -> None:
    """The legacy report into the raw store."""
    from pipelines.config.sources import BillingSource
    from pipelines.ingest.billing.exports import ingest, list_deliveries

    source, raw = BillingSource(name="legacy", location=str(place / CSV)), place / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    for delivery in list_deliveries(source, raw):
        ingest(delivery, source, raw)


def read_csv(place: Path, lines: int) -> None:
    """The legacy report read by Polars, all columns as text: the least that reads any bill."""
    import polars as pl

    for file in sorted((place / CSV).rglob("*.csv.gz")):
        pl.read_csv(file, infer_schema=False)


def current_delivery(place: Path) -> tuple[str, Path]:
    """The month of a bench bill and the folder of its newest delivery; its name sorts last."""
    month = next(found for found in (place / "bucket").rglob("BILLING_PERIOD=*") if found.parent.name == "data")
    return month.name.partition("=")[2], max(path for path in month.iterdir() if path.is_dir())


def _needed() -> Iterator[tuple[str, str]]:
    """The columns some model of the bill names, and those that mark repeated lines, each with an aggregate of it."""
    from pipelines.ingest.billing.columns import CUR, MONEY
    from pipelines.ingest.billing.identities import IDENTITY
    from pipelines.models.catalog import load_catalog

    reading = [model.text for model in load_catalog().ordered if CUR.table in model.inputs]
    words = set(re.findall(r"\w+", " ".join(reading)))
    for column in CUR.columns:
        if column.name in words:
            yield column.name, f"{'sum' if column.type == MONEY else 'max'}({column.name}) as {column.name}"
    for name in IDENTITY:
        yield name, f"max({name}) as {name}"


TASKS = {
    "generate": generate,
    "generate-runs": generate_runs,
    "generate-year": generate_year,
    "generate-months": generate_months,
    "generate-csv": generate_csv,
    "generate-accounts": accounts.write_accounts,
    "build-before-sweep": lambda place, _: accounts.build_before_sweep(place),
    "sweep": lambda place, _: accounts.sweep(place),
    "restate": restate,
    "add-day": add_day,
    "bare-scan": bare_scan,
    "exact-scan": exact_scan,
    "ingest-csv": ingest_csv,
    "read-csv": read_csv,
}

if __name__ == "__main__":
    main()
