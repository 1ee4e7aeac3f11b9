"""How the build of many runs grows: a hundred epochs, checkpoints and evaluations each, on a bill of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipelines.base.console import Console
from pipelines.bench.measure import median, task, timed
from pipelines.bench.report import Figures, Run, Target, growth, target_table, where

# Enough of the bill for the machines of every run, and as much again that is none of theirs.
LINES_PER_RUN, FEWEST_RUNS = 20, 500
KIND = "full build"


def measured(folder: Path, runs: int, repeat: int) -> Figures:
    """The median of all rounds by number of runs, at three sizes evenly spread on a logarithmic scale."""
    figures: Figures = {}
    for size in sorted({max(runs // 10, FEWEST_RUNS), max(round(runs / 10**0.5), FEWEST_RUNS), runs}):
        place = folder / str(size)
        Console().note(f"Generating {size:,} runs …")
        task("generate-runs", place, size * LINES_PER_RUN)
        found: list[Run] = []
        for number in range(repeat):
            Console().note(f"Round {number + 1} of {repeat}, {size:,} runs …")
            shutil.rmtree(place / "warehouse", ignore_errors=True)
            found.append(timed(["-m", "pipelines", "build", "--config", str(place / "trainledger.toml")]))
        figures[size, KIND] = median(found)
        shutil.rmtree(place)
    return figures


def report(figures: Figures, repeat: int) -> str:
    """What was measured, as Markdown."""
    sizes = sorted(size for size, _ in figures)
    largest = figures[sizes[-1], KIND]
    named = f"{sizes[-1]:,} runs"
    targets = [
        Target(f"seconds of a full build of {named}", largest.wall, largest.cpu, 60),
        Target("peak memory of it, GiB", largest.peak_mib / 1024, None, 4),
        Target(f"growth exponent from {sizes[0]:,} runs", growth(figures, "wall"), growth(figures, "cpu"), 1.05),
    ]
    rows = (
        f"| {size:,} | {size * LINES_PER_RUN:,} | {run.wall:.1f} | {run.cpu:.1f} | {run.peak_mib:,.0f} |"
        for size, run in ((size, figures[size, KIND]) for size in sizes)
    )
    return "\n".join(
        [
            "# Benchmark of many runs",
            "",
            f"{where(repeat)}; `make bench RUNS={sizes[-1]}`. A run has about a hundred epochs, checkpoints and "
            "evaluations together, on one to four machines; a build reads, attributes, checks and publishes them.",
            "",
            *target_table(targets),
            "",
            "| runs | bill lines | s | processor s | peak MiB |",
            "|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )
