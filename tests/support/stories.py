"""Golden stories: a folder with a bill and run events as a company delivers them, and the figures derived by hand."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from shutil import copy
from typing import Any

import polars as pl

from pipelines.base import resources
from pipelines.base.sql import tables_in
from pipelines.engine import Engine
from pipelines.models.build import Builder
from support.bills import write_config, write_events, write_export
from support.focus_exports import write_focus_export
from support.ledger_law import LAW_TABLES
from support.ledgers import EXPLAIN_TABLES, build_warehouse, open_publication, publish_tables

# How a bill's CSV states that a cell is empty on the bill; a blank cell is the ordinary value.
EMPTY = "-"
# Other tests read these as published: whole, or just what is named here.
_COMMITMENTS = ("app/commitments.yml", "app/commitments_known.yml", "mart_cost_ledger_daily")
PUBLISHED: Mapping[str, Collection[str]] = {
    "an_expensive_run_and_three_budgets": (),
    "epochs_in_parts_and_blocks": ("app/run.yml",),
    "every_kind_of_commitment": _COMMITMENTS,
    "idle_reservation": _COMMITMENTS,
    "two_currencies": EXPLAIN_TABLES,
    "wins_ties_and_losses": (),
}


@dataclass(frozen=True)
class Figure:
    """One expected figure: `figure` is a column or expression that gives one value over the chosen rows."""

    table: str
    where: str
    figure: str
    expected: str
    derivation: str
    tolerance: str = ""
    publication: str = ""

    @property
    def sql(self) -> str:
        return f"select {self.figure} from {self.table} where {self.where or 'true'}"


def read_expected(story: Path) -> list[Figure]:
    """The figures of `expected.csv`."""
    with (story / "expected.csv").open(encoding="utf-8", newline="") as file:
        return [Figure(**row) for row in csv.DictReader(file)]


def publish_story(story: Path, root: Path) -> Builder:
    """Build a story of PUBLISHED below `root`, and publish what others read of it and the tables of its figures."""
    read: set[str] = set()
    for name in PUBLISHED[story.name]:
        page = resources.DASHBOARDS / name
        read |= {*re.findall(r"\w+", page.read_text(encoding="utf-8"))} if page.is_file() else {name}
    if not read:
        return build_story(story, root)
    figures = {name for figure in read_expected(story) for name in tables_in(figure.sql)}
    return build_story(story, root, read | figures | LAW_TABLES, publish_tables)


def read_bills(story: Path) -> list[dict[str, list[dict[str, str]]]]:
    """Lines by month, one mapping per delivery: `bill_YYYY-MM.csv`, and `bill_YYYY-MM_restated.csv` as the second."""
    deliveries = [
        {path.stem[5:12]: _lines(path) for path in sorted(story.glob(pattern))}
        for pattern in ("bill_????-??.csv", "bill_????-??_restated.csv")
    ]
    return [delivery for delivery in deliveries if delivery]


def _lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{key: "" if cell == EMPTY else cell for key, cell in row.items() if cell} for row in rows]


def build_story(
    story: Path, root: Path, only: Collection[str] = (), build: Callable[..., Builder] = build_warehouse
) -> Builder:
    """Deliver and build the story below `root`, once per delivery of its bill; whole, or `only` some tables of it.

    `build` is called with the configuration and with `only`, as is `publish_tables`.
    """
    events = [json.loads(line) for line in (story / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    runs = write_events(root / "runs", events)
    # Reported by whoever holds reserved capacity, as AWS answers it or as a table.
    held = next(story.glob("reservations.*"), None)
    # Declared of comparisons before their runs.
    registered = next(story.glob("registrations"), None)
    bought = next(story.glob("commitments.json"), None)
    served = next(story.glob("serving"), None)
    builder = None
    for number, months in enumerate(read_bills(story), start=1):
        export = writer_of(months)(root, months, execution=f"20260801T00000{number}Z-delivery{number}")
        config = write_config(
            root,
            billing=export,
            runs=runs,
            reservations=held,
            registrations=registered,
            commitments=bought,
            serving=served,
        )
        _add_decisions(story, config)
        builder = build(config, only)
    assert builder is not None, f"{story} has no bill_YYYY-MM.csv"
    return builder


def _add_decisions(story: Path, config: Path) -> None:
    """What people decided: `decisions.toml` as part of the configuration, frozen baselines next to it."""
    for frozen in story.glob("baseline*.toml"):
        copy(frozen, config.parent)
    if (story / "decisions.toml").is_file():
        config.write_text(config.read_text() + "\n" + (story / "decisions.toml").read_text())


def writer_of(months: Mapping[str, Sequence[Mapping[str, str]]]) -> Callable[..., Path]:
    """How a bill is delivered: as the kind of export its columns are of."""
    return (
        write_focus_export if any("BilledCost" in line for lines in months.values() for line in lines) else write_export
    )


def differences(builder: Builder, built: Engine, figures: list[Figure]) -> list[str]:
    """Each figure that is not as expected, in words; `built` holds the tables as they are now."""
    found = []
    for publication in sorted({figure.publication for figure in figures}):
        with open_publication(builder, int(publication)) if publication else nullcontext(built) as engine:
            for figure in figures:
                if figure.publication == publication:
                    rows = engine.query(figure.sql)
                    problem = _difference(rows, figure)
                    if problem:
                        found.append(f"{figure.sql}\n    {problem}\n    {figure.derivation}")
    return found


def _difference(rows: pl.DataFrame, figure: Figure) -> str | None:
    if rows.shape != (1, 1):
        return f"gives {rows.height} rows of {rows.width} columns, not one value"
    value = rows.item()
    if agrees(value, figure.expected, figure.tolerance):
        return None
    return f"is {value}, expected {figure.expected or 'null'}"


def agrees(value: Any, expected: str, tolerance: str = "") -> bool:
    """Whether a value is the expected one: numbers to the last decimal unless a tolerance is given; blank is null."""
    if value is None or expected == "":
        return value is None and expected == ""
    if isinstance(value, bool):
        return str(value).lower() == expected
    if isinstance(value, datetime):
        return value == datetime.fromisoformat(expected)
    if isinstance(value, date):
        return value == date.fromisoformat(expected)
    if isinstance(value, int | float | Decimal):
        return abs(Decimal(str(value)) - Decimal(expected)) <= Decimal(tolerance or 0)
    return str(value) == expected
