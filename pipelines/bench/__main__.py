"""`make bench`: what a build costs compared with a bare scan of the same files, measured in the same run.

At sizes from a million lines up to the requested one it measures, in turn and each as its own process: a bare DuckDB
scan and aggregation of the columns the models read, one with exact sums, a full build, an unchanged refresh, the
refresh of a restated month; and at up to two million lines the ingest of the bill as a legacy csv.gz report and a bare
Polars read of it.
First it measures the fixed cost: start-up, a small build by stage, and how both grow with the months.
With --spark it measures instead a full build on DuckDB and one on Spark; with --runs the build of so many runs, a
hundred epochs, checkpoints and evaluations each, and the reports of a year of as many; with --accounts what a
recommendation of commitments over thirteen months of so many accounts takes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from pipelines.base.console import Console
from pipelines.bench import accounts, fixed, many_runs, year
from pipelines.bench.measure import median, task, timed
from pipelines.bench.report import SPARK_KIND, Figures, Run, report, spark_report

# A million lines is the smallest bill worth measuring; a larger csv adds nothing, for files are read one by one.
SMALLEST, CSV_LINES = 1_000_000, 2_000_000
# Above it a single round is enough: its start-up is a small part.
REPEATED_UP_TO = 10_000_000
SPARK = {"TRAINLEDGER_WAREHOUSE__ENGINE": "spark", "TRAINLEDGER_WAREHOUSE__SPARK__MEMORY": "1g"}


def main() -> None:
    """Measure and print the tables; with --keep also write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000, help="lines of the largest month")
    parser.add_argument("--runs", type=int, help="measure this many training runs instead of a large bill")
    parser.add_argument("--accounts", type=int, help="measure the recommendation over this many accounts instead")
    parser.add_argument("--spark", action="store_true", help="measure full builds on DuckDB and on Spark instead")
    parser.add_argument("--fixed", action="store_true", help="measure the fixed cost alone")
    parser.add_argument("--repeat", type=int, help="rounds; by default 3, or 1 above 10 million lines")
    parser.add_argument("--place", type=Path, help="folder to work in; else a temporary one")
    parser.add_argument("--keep", type=Path, help="Markdown file to write the tables to")
    arguments = parser.parse_args()
    is_long = arguments.runs or arguments.accounts or arguments.lines > REPEATED_UP_TO
    repeat = arguments.repeat or (1 if is_long else 3)
    if arguments.place:
        arguments.place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trainledger-bench-", dir=arguments.place) as folder:
        if arguments.runs:
            text = many_runs.report(many_runs.measured(Path(folder), arguments.runs, repeat), repeat)
            reports = year.measured(Path(folder), arguments.runs, many_runs.LINES_PER_RUN)
            text = f"{text}\n\n{year.report(reports, arguments.runs)}"
        elif arguments.accounts:
            found = accounts.measured(Path(folder), max(arguments.accounts, accounts.FEWEST_ACCOUNTS), repeat)
            text = accounts.report(found, repeat)
        elif arguments.spark:
            text = spark_report(on_spark(Path(folder), arguments.lines))
        else:
            text = fixed.report(fixed.measured(Path(folder)))
            if not arguments.fixed:
                text = f"{report(measured(Path(folder), arguments.lines, repeat), repeat)}\n\n{text}"
    for line in text.splitlines():
        Console().say(line)
    if arguments.keep:
        arguments.keep.write_text(text + "\n", encoding="utf-8")


def sizes(lines: int) -> list[int]:
    """The sizes to measure, smallest first: evenly spread on a logarithmic scale."""
    smallest = SMALLEST if lines > SMALLEST else lines // 5
    middle = round((smallest * lines) ** 0.5, -5)
    return sorted({smallest, int(middle), lines} - {0})


def measured(folder: Path, lines: int, repeat: int) -> Figures:
    """The median of all rounds, by size and kind of work."""
    console = Console()
    runs: dict[tuple[int, str], list[Run]] = defaultdict(list)
    csv_lines = min(lines, CSV_LINES)
    for size in (csv_lines // 5, csv_lines):
        place = folder / f"csv-{size}"
        console.note(f"Generating {size:,} lines as csv …")
        task("generate-csv", place, size)
        for number in range(repeat):
            console.note(f"Round {number + 1} of {repeat}, {size:,} lines of csv …")
            runs[size, "bare csv read"].append(task("read-csv", place))
            runs[size, "csv ingest"].append(task("ingest-csv", place))
        shutil.rmtree(place)
    for size in sizes(lines):
        place = folder / str(size)
        console.note(f"Generating {size:,} lines …")
        task("generate", place, size)
        for number in range(repeat):
            console.note(f"Round {number + 1} of {repeat}, {size:,} lines …")
            measure(place, size, runs)
        shutil.rmtree(place)
    return {at: median(found) for at, found in runs.items()}


def measure(place: Path, size: int, runs: dict[tuple[int, str], list[Run]]) -> None:
    """One round at one size: bare scans, full build, unchanged refresh, restated refresh."""
    shutil.rmtree(place / "warehouse", ignore_errors=True)
    runs[size, "bare scan"].append(task("bare-scan", place))
    runs[size, "exact scan"].append(task("exact-scan", place))
    runs[size, "full build"].append(timed(_build(place)))
    runs[size, "unchanged refresh"].append(timed(_build(place)))
    task("restate", place)
    runs[size, "restated month"].append(timed(_build(place)))


def on_spark(folder: Path, lines: int) -> Figures:
    """A full build on DuckDB and one on Spark, at the smallest and the largest size."""
    console, figures = Console(), {}
    for size in (sizes(lines)[0], lines):
        place = folder / str(size)
        console.note(f"Generating and building {size:,} lines …")
        task("generate", place, size)
        figures[size, "full build"] = timed(_build(place))
        shutil.rmtree(place / "warehouse")
        figures[size, SPARK_KIND] = timed(_build(place), environment=SPARK)
        shutil.rmtree(place)
    return figures


def _build(place: Path) -> list[str]:
    return ["-m", "pipelines", "build", "--config", str(place / "trainledger.toml")]


if __name__ == "__main__":
    main()
