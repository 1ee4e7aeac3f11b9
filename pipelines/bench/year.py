"""How long the reports of a year of runs take, and how large their pages are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipelines.base.console import Console
from pipelines.bench.measure import task, timed
from pipelines.bench.report import Run, Target, target_table

KINDS = ("training_cost", "savings", "commitments")
SECONDS, MEGABYTES = 30, 10


@dataclass(frozen=True)
class Rendered:
    """A report as page and on paper: what both together took, and their bytes."""

    kind: str
    run: Run
    page_bytes: int
    paper_bytes: int


def measured(folder: Path, runs: int, lines_per_run: int) -> list[Rendered]:
    """Each report of a year with so many runs, made from a warehouse that is built for it."""
    place = folder / "year"
    Console().note(f"Generating a year of {runs:,} runs …")
    task("generate-year", place, runs * lines_per_run)
    config = ["--config", str(place / "trainledger.toml")]
    Console().note("Building it …")
    timed(["-m", "pipelines", "build", *config])
    found = []
    for kind in KINDS:
        page, paper = place / f"{kind}.html", place / f"{kind}.pdf"
        Console().note(f"Its report {kind} …")
        made = ["-m", "pipelines", "report", "--kind", kind, "--out", str(page), "--pdf", str(paper), *config]
        found.append(Rendered(kind, timed(made), page.stat().st_size, paper.stat().st_size))
    return found


def report(found: list[Rendered], runs: int) -> str:
    """What was measured, as Markdown."""
    slowest, largest = max(found, key=lambda one: one.run.wall), max(found, key=lambda one: one.page_bytes)
    targets = [
        Target("seconds of the slowest report, page and PDF", slowest.run.wall, slowest.run.cpu, SECONDS),
        Target("megabytes of the largest page", largest.page_bytes / 1e6, None, MEGABYTES),
    ]
    rows = (
        f"| {one.kind} | {one.run.wall:.1f} | {one.run.cpu:.1f} | {one.run.peak_mib:,.0f} "
        f"| {one.page_bytes / 1024:,.0f} | {one.paper_bytes / 1024:,.0f} |"
        for one in found
    )
    return "\n".join(
        [
            f"## Reports of a year of {runs:,} runs",
            "",
            "Twelve months, bills and runs in one warehouse; each report as page and as PDF, start-up counted in.",
            "",
            *target_table(targets),
            "",
            "| report | s | processor s | peak MiB | page KiB | PDF KiB |",
            "|---|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )
