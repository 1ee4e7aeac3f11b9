"""The fixed cost, whatever the bill: start-up, a small build by stage, and growth with the number of months."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.base.console import Console
from pipelines.bench.bill import FEWEST_LINES
from pipelines.bench.measure import median, task, timed
from pipelines.bench.report import Run, where

# About half a second on an idle machine of 2026; every figure is also a multiple of it.
LOOP = "total = 0\nfor number in range(9_000_000):\n    total += number"
LOOP_SECONDS = 0.5
MONTHS = (1, 6, 36)
# What a day adds to the newest month, and how much more it may cost after many months than after one.
DAY_LINES, DAY_RATIO = 2_000_000, 1.3
_DAY = f"a day of {DAY_LINES:,} lines more"
ROUNDS = 3
_IMPORTS = "import duckdb, polars, pyarrow.parquet, deltalake, pydantic_settings, typer"


@dataclass(frozen=True)
class Command:
    """A command, the processor seconds it may take on an idle machine, and what it took."""

    name: str
    run: Run
    seconds: float | None = None
    floor: Run | None = None


@dataclass(frozen=True)
class Fixed:
    """Everything that was measured; stages and floors in processor seconds."""

    loop: Run
    commands: list[Command]
    stages: dict[str, float]
    floors: dict[str, float]
    months: dict[int, dict[str, Run]]


def measured(folder: Path, months: tuple[int, ...] = MONTHS) -> Fixed:
    """Measure in `folder`; each command in a process of its own."""
    console = Console()
    loop = _best(["-c", LOOP])
    console.note("Building the demo …")
    place = folder / "demo"
    timed(["-m", "pipelines", "demo", "--out", str(place)])
    commands = list(_commands(place))
    shutil.rmtree(place / "warehouse")
    stages = _json(place)
    floors = {**_json(place, "--floor"), "start-up and plan": _best(["-c", _IMPORTS]).cpu}
    return Fixed(loop, commands, stages, floors, {count: _growth(folder, count, console) for count in months})


def _commands(place: Path) -> Iterator[Command]:
    config = ["--config", str(place / "trainledger.toml")]
    bare, engine = _best(["-c", "import typer"]), _best(["-c", "import duckdb, polars"])
    yield Command("`--help`", _best(["-m", "pipelines", "--help"]), 0.3, bare)
    yield Command("a wrong argument", _best(["-m", "pipelines", "build", "--wrong"], code=2), 0.3, bare)
    yield Command("`query`", _best(["-m", "pipelines", "query", "select 1", *config]), 1.0, engine)
    yield Command("unchanged build of the demo", _best(["-m", "pipelines", "build", *config]), 1.5, engine)
    definitions = ["-c", "from pipelines.definitions import defs; defs.resolve_asset_graph()"]
    yield Command("Dagster definitions", _best(definitions), 2.0, _best(["-c", "import dagster"]))
    for gate, name, most in (("great_expectations", "Great Expectations", 14.0), ("none", "compiled checks", 10.0)):
        _set_gate(place, gate)
        runs = []
        for _ in range(ROUNDS):
            shutil.rmtree(place / "warehouse", ignore_errors=True)
            runs.append(timed(["-m", "pipelines", "build", *config]))
        yield Command(f"build of the demo from empty, {name}", min(runs, key=lambda run: run.cpu), most)


def _growth(folder: Path, months: int, console: Console) -> dict[str, Run]:
    place = folder / f"months-{months}"
    console.note(f"Building {months} months …")
    task("generate-months", place, months)
    build = ["-m", "pipelines", "build", "--config", str(place / "trainledger.toml")]
    _set_gate(place, "none")
    found = {"full build": timed(build), "unchanged build": timed(build)}
    task("restate", place)
    found["one month restated"] = timed(build)
    task("add-day", place, DAY_LINES)
    found[_DAY] = timed(build)
    shutil.rmtree(place)
    return found


def _best(arguments: list[str], code: int = 0) -> Run:
    return median([timed(arguments, code) for _ in range(ROUNDS)])


def _set_gate(place: Path, gate: str) -> None:
    config = place / "trainledger.toml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("gate = ")]
    lines.insert(lines.index("[warehouse]") + 1, f'gate = "{gate}"')
    config.write_text("\n".join(lines) + "\n")


def _json(place: Path, *more: str) -> dict[str, float]:
    arguments = [sys.executable, "-m", "pipelines.bench.stages", str(place / "trainledger.toml"), *more]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(printed.stdout.splitlines()[-1])


def report(fixed: Fixed) -> str:
    """All that was measured, as Markdown."""
    unit = fixed.loop.cpu
    lines = [
        "# Fixed cost",
        "",
        f"{where(ROUNDS)}.",
        "",
        f"Processor seconds, and multiples of a fixed Python loop, which took {unit:.2f} s here and about "
        f"{LOOP_SECONDS} s on an idle machine. The floor is what importing the libraries alone takes.",
        "",
        "| Command | s | × loop | at most, × loop | | floor, s |",
        "|---|---:|---:|---:|---|---:|",
    ]
    for one in fixed.commands:
        floor = f"{one.floor.cpu:.2f}" if one.floor else ""
        most = one.seconds / LOOP_SECONDS if one.seconds else None
        met = "" if most is None else "met" if one.run.cpu / unit <= most else "**not met**"
        limit = "" if most is None else f"{most:.1f}"
        lines.append(f"| {one.name} | {one.run.cpu:.2f} | {one.run.cpu / unit:.1f} | {limit} | {met} | {floor} |")
    lines += [
        "",
        "A build of the demo from empty, compiled checks, by stage. The floor of rows is the bare SELECTs (no Parquet,"
        " no Polars transforms), that of checks their statements alone.",
        "",
        "| Stage | s | × loop | floor, s |",
        "|---|---:|---:|---:|",
    ]
    for stage, seconds in sorted(fixed.stages.items(), key=lambda item: -item[1]):
        floor = f"{fixed.floors[stage]:.2f}" if stage in fixed.floors else ""
        lines.append(f"| {stage} | {seconds:.2f} | {seconds / unit:.1f} | {floor} |")
    kinds = list(next(iter(fixed.months.values())))
    lines += [
        "",
        f"Growth with the months of {FEWEST_LINES:,} lines each, compiled checks: processor seconds (× loop).",
        "",
        f"| Months | {' | '.join(kinds)} | peak MiB |",
        "|---:|" + "---:|" * (len(kinds) + 1),
    ]
    for count, found in fixed.months.items():
        cells = [f"{found[kind].cpu:.1f} ({found[kind].cpu / unit:.0f})" for kind in kinds]
        peak = max(run.peak_mib for run in found.values())
        lines.append(f"| {count} | {' | '.join(cells)} | {peak:,.0f} |")
    ratio = fixed.months[max(fixed.months)][_DAY].cpu / fixed.months[min(fixed.months)][_DAY].cpu
    met = "met" if ratio <= DAY_RATIO else "**not met**"
    lines += [
        "",
        f"A day after {max(fixed.months)} months costs {ratio:.2f} × what it costs after {min(fixed.months)}; at most "
        f"{DAY_RATIO}: {met}.",
    ]
    return "\n".join(lines)
