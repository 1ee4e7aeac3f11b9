"""The recommendation over thirteen months of many accounts: how long it sweeps their hourly use, and in what memory."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from pipelines.base.console import Console
from pipelines.bench.measure import median, task
from pipelines.bench.report import Figures, Run, Target, target_table, where

MONTHS = (*(f"2025-{month:02d}" for month in range(7, 13)), *(f"2026-{month:02d}" for month in range(1, 8)))
LINES_PER_ACCOUNT, FEWEST_ACCOUNTS = 200, 50
# What is swept; all else that it rests on is built before, unmeasured.
SWEPT = "mart_commitment_recommendation"
KIND = "sweep"


def measured(folder: Path, accounts: int, repeat: int) -> Figures:
    """The median of all rounds."""
    place, found = folder / f"accounts-{accounts}", list[Run]()
    Console().note(f"Generating {len(MONTHS)} months of {accounts:,} accounts …")
    task("generate-accounts", place, accounts)
    for number in range(repeat):
        Console().note(f"Round {number + 1} of {repeat}, {accounts:,} accounts …")
        shutil.rmtree(place / "warehouse", ignore_errors=True)
        task("build-before-sweep", place)
        found.append(task("sweep", place))
    shutil.rmtree(place)
    return {(accounts, KIND): median(found)}


def report(figures: Figures, repeat: int) -> str:
    """What was measured, as Markdown."""
    ((accounts, _), run), *_ = figures.items()
    lines = accounts * LINES_PER_ACCOUNT * len(MONTHS)
    targets = [
        Target(f"seconds of a sweep over {len(MONTHS)} months × {accounts:,} accounts", run.wall, run.cpu, 60, ".1f"),
        Target("peak memory of it, GiB", run.peak_mib / 1024, None, 4),
    ]
    return "\n".join(
        [
            "# Benchmark of the commitment recommendation",
            "",
            f"{where(repeat)}; `make bench ACCOUNTS={accounts}`. A bill of {lines:,} lines in {len(MONTHS)} "
            f"months; measured is one process that makes `{SWEPT}` with its checks.",
            "",
            *target_table(targets),
        ]
    )


def write_accounts(place: Path, accounts: int) -> None:
    """A bill of every month, each an export of its own, and a configuration that reads them all."""
    from pipelines.bench.bill import write_bench_bill

    entries = ['[warehouse]\nlocation = "warehouse"\n']
    for number, month in enumerate(MONTHS):
        write_bench_bill(place / month, accounts * LINES_PER_ACCOUNT, month=month, seed=number, accounts=accounts)
        entries.append(f'[[billing]]\nname = "bench-{month}"\nlocation = "{month}/bucket/cur2/bench"\n')
    (place / "trainledger.toml").write_text("\n".join(entries))


def build_before_sweep(place: Path) -> None:
    """Everything that the swept table rests on."""
    from pipelines.models.catalog import load_catalog

    _build(place, load_catalog().behind(SWEPT))


def sweep(place: Path) -> None:
    """The recommendation, made from what is there."""
    _build(place, [SWEPT])


def _build(place: Path, names: Collection[str]) -> None:
    from pipelines.config.settings import load_settings
    from pipelines.models.build import Builder
    from pipelines.models.publish import plan
    from pipelines.models.records import RECORDS
    from pipelines.models.warehouse import Warehouse

    builder = Builder(Warehouse(load_settings(place / "trainledger.toml")))
    with builder.lake.lock():
        planned = plan(builder.warehouse)
        for month in planned.months:
            builder.warehouse.bill.ingest(month)
        for read in RECORDS.values():
            read(builder.warehouse)
        steps = [step for step in builder.steps(planned.months) if step[0] in names]
        for _ in builder.build_steps(steps):
            pass
