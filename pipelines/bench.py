"""`make bench`: what a build costs beside a bare DuckDB scan of the same files, measured in the same run.

For two sizes it measures, interleaved and repeated: the bare scan and aggregation of every column the bill is read
from, a full build, an unchanged refresh and a refresh of a restated month, each as its own process. Figures are
medians; slopes are seconds per million lines between the two sizes, so that start-up cancels out.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.console import Console
from pipelines.demo.bench_bill import restate, write_bench_bill
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.sources.cur_columns import CUR, tag_containers

KINDS = ("bare scan", "full build", "unchanged refresh", "restated month")

BOUNDS = """What bounds it: one pass over the bill (`fct_charge`), about half of it reading the columns and half
cutting and grouping; it keeps no line twice. Peak memory is the engine's cap (`memory_limit`, 2 GB) at any size. A
restated month costs what a first build of it does, less the training runs; months that did not change are recognised
by name. The bare scan reads every column the normalised bill needs, sums the numbers, takes the largest of the texts
and groups by day, account, line type and product."""


@dataclass(frozen=True)
class Run:
    """One measured process: wall and processor seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak_mib: float


def main() -> None:
    """Measure and print the table; with --keep also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000, help="lines of the larger month")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="Markdown file to write the table to")
    # A process of its own for everything: a child's peak memory starts at its parent's.
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--generate", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--restate", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        bare_scan(sorted(given.bare.rglob("*.parquet")))
        return
    if given.generate:
        write_bench_bill(given.generate, given.lines)
        return
    if given.restate:
        restate(given.restate)
        return
    console = Console()
    sizes = (given.lines // 5, given.lines)
    runs: dict[tuple[int, str], list[Run]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="trainledger-bench-") as folder:
        for size in sizes:
            console.note(f"Generating {size:,} lines …")
            timed(["-m", "pipelines.bench", "--generate", str(Path(folder) / str(size)), "--lines", str(size)])
        for number in range(given.repeat):
            for size in sizes:
                console.note(f"Round {number + 1} of {given.repeat}, {size:,} lines …")
                for kind, run in measure(Path(folder) / str(size)).items():
                    runs[size, kind].append(run)
    report = table(sizes, runs, given.repeat)
    for line in report.splitlines():
        console.say(line)
    if given.keep:
        given.keep.write_text(report + "\n", encoding="utf-8")


def measure(place: Path) -> dict[str, Run]:
    """One round at one size: bare scan, full build, unchanged refresh, restated refresh."""
    build = ["-m", "pipelines", "build", "--config", str(place / "trainledger.toml")]
    shutil.rmtree(place / "warehouse", ignore_errors=True)
    found = {"bare scan": timed(["-m", "pipelines.bench", "--bare", str(current_files(place))])}
    found["full build"] = timed(build)
    found["unchanged refresh"] = timed(build)
    timed(["-m", "pipelines.bench", "--restate", str(place)])
    found["restated month"] = timed(build)
    return found


def current_files(place: Path) -> Path:
    """The folder of the newest delivery; its name sorts last."""
    months = sorted((place / "bucket").rglob("BILLING_PERIOD=*"))
    data = next(month for month in months if month.parent.name == "data")
    return sorted(path for path in data.iterdir() if path.is_dir())[-1]


def bare_scan(files: list[Path]) -> None:
    """Read and aggregate every column the normalised bill needs, the plain way."""
    present = set(pq.read_schema(files[0]).names)
    parts = ["count(*) as line_count"]
    for column in CUR.columns:
        if column.name in present:
            parts.append(f"{'sum' if column.type.startswith('DECIMAL') else 'max'}({column.name}) as {column.name}")
    parts += [f"sum(cardinality({name})) as {name}" for name in tag_containers() if name in present]
    with DuckDBEngine() as engine:
        engine.view("bill", files)
        engine.query(
            "select cast(line_item_usage_start_date as date) as day, line_item_usage_account_id as account, "
            f"line_item_line_item_type as type, line_item_product_code as product, {', '.join(parts)} "
            "from bill group by all"
        )


def timed(arguments: list[str]) -> Run:
    """Run Python with these arguments to the end and take its measures from the operating system."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed: {said.strip().splitlines()[-1]}")
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def table(sizes: tuple[int, int], runs: dict[tuple[int, str], list[Run]], repeat: int) -> str:
    """The measures as Markdown."""

    def median(size: int, kind: str, measure: str) -> float:
        return statistics.median(getattr(run, measure) for run in runs[size, kind])

    small, large = sizes
    span = (large - small) / 1e6
    bare_slope = {m: (median(large, "bare scan", m) - median(small, "bare scan", m)) / span for m in ("wall", "cpu")}
    lines = [
        "# Benchmarks",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors, {_memory_gib():.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}; medians of {repeat} rounds; "
        f"`make bench LINES={large}`.",
        "",
        f"| | {small / 1e6:g} M lines, s | {large / 1e6:g} M lines, s | processor s | peak MiB "
        "| s per M lines | × bare scan | × bare, processor |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind in KINDS:
        slope = {m: (median(large, kind, m) - median(small, kind, m)) / span for m in ("wall", "cpu")}
        lines.append(
            f"| {kind} | {median(small, kind, 'wall'):.1f} | {median(large, kind, 'wall'):.1f} "
            f"| {median(large, kind, 'cpu'):.1f} | {median(large, kind, 'peak_mib'):,.0f} | {slope['wall']:.2f} "
            f"| {slope['wall'] / bare_slope['wall']:.1f} | {slope['cpu'] / bare_slope['cpu']:.1f} |"
        )
    share = median(large, "unchanged refresh", "wall") / median(large, "full build", "wall")
    lines += ["", f"An unchanged refresh costs {share:.1%} of a full build of {large / 1e6:g} million lines."]
    lines += ["", BOUNDS]
    return "\n".join(lines)


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


if __name__ == "__main__":
    main()
