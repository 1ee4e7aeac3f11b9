"""Building twice is building once: the same input gives the same files, wherever and however often it is built.

A month delivered again makes its own months of the tables alone.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.ledgers import build_warehouse
from support.random_ledgers import FIRST, HOURS, at
from support.small_company import AUGUST, Company

from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.catalog import load_catalog
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Lake

JULY = "2026-07"
JUNE = "2026-06"
LASTS = at(HOURS * 3_600_000) - FIRST
# The parts by month of what tables over all months add up.
PARTS = (
    "core/fct_charge_sum_monthly",
    "detail/detail_commitment_use_daily",
    "marts/mart_commitment_coverage_daily",
    "core/fct_ledger_piece",
)


def deliver(root: Path, rate: str, execution: str) -> Path:
    """A June and a July bill and a run in each; `rate` is July's. Returns the configuration."""
    june = [instance_hour("2026-06-30T22", "i-0a", "p5.48xlarge", "55.04")]
    july = [instance_hour(f"2026-07-14T{hour}", "i-0a", "p5.48xlarge", rate) for hour in (20, 21, 22, 23)]
    credit = instance_hour("2026-07-14T20", "", "p5.48xlarge", "-1.2345678901", line_item_line_item_type="Credit")
    # June is delivered once; a new delivery of the same lines would be another one.
    months = {JULY: [*july, credit]} | ({JUNE: june} if execution.endswith("first") else {})
    export = write_export(root, months, execution=execution)
    events = one_attempt("july", ["i-0a"], "p5.48xlarge", FIRST, LASTS, model="m", dataset="d")
    events += one_attempt("june", ["i-0a"], "p5.48xlarge", FIRST.replace(month=6, day=30), LASTS / 6)
    return write_config(root, billing=export, runs=write_events(root / "runs", events))


def files(builder: Builder) -> dict[str, str]:
    """Every data file a table ever had, by its place in the warehouse, with a digest of its bytes."""
    tables = Path(builder.warehouse.settings.warehouse.location) / "tables"
    found = {}
    for path in sorted(tables.rglob("*.parquet")):
        place = path.relative_to(tables).as_posix()
        if place.startswith("raw/"):
            # What was recorded is known by its listing, which records when; what is made of it, by content alone.
            place = f"{path.parent.name} {path.stem.rpartition('-')[2]}"
        found[place] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def current(builder: Builder, month: str | None = None) -> dict[str, list[str]]:
    """Names of the files each table holds now, of one month or all."""
    # Which deliveries there were is history, and does not return.
    history = ("fct_restatement", "mart_restatement", "detail_restated_figure")
    # Savings are shown with what restatements moved of them; baselines stay as first published.
    history += ("mart_savings_monthly", "detail_savings_run", "detail_baseline")
    kept = [m for m in builder.catalog.ordered if m.stored and m.name not in history]
    models = [m for m in kept if month is None or m.grain == "month"]
    return {m.key: [file.name for file in builder.lake.files(m.key, month)] for m in models}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("once")


@pytest.fixture(scope="module")
def first_build(root: Path) -> Builder:
    return build_warehouse(deliver(root, "55.04", "20260801T000000Z-first"))


@pytest.mark.slow
def test_building_again_writes_no_file_and_no_version(root: Path, first_build: Builder) -> None:
    before, known, log = files(first_build), versions(first_build), commits(root)
    again = build_warehouse(root / "trainledger.toml")
    assert files(again) == before
    assert versions(again) == known
    assert commits(root) == log


def versions(builder: Builder) -> dict[str, int]:
    """The newest version of each table."""
    stored = [model.key for model in builder.catalog.ordered if model.stored]
    return {key: builder.lake.record(key)["version"] for key in stored}


def commits(root: Path) -> list[str]:
    """Every Delta commit of the warehouse."""
    return sorted(str(path) for path in (root / "warehouse" / "tables").rglob("_delta_log/*.json"))


@pytest.mark.slow
def test_building_elsewhere_gives_the_same_bytes(first_build: Builder, tmp_path: Path) -> None:
    twin = build_warehouse(deliver(tmp_path, "55.04", "20260801T000000Z-first"))
    assert files(twin) == files(first_build)


@pytest.mark.slow
def test_restating_a_month_leaves_the_other_and_returns(root: Path, first_build: Builder) -> None:
    before, june, july = current(first_build), current(first_build, JUNE), current(first_build, JULY)
    restated = build_warehouse(deliver(root, "49.536", "20260802T000000Z-second"))
    assert current(restated, JUNE) == june
    assert current(restated, JULY) != july
    # Back to the first delivery: the very files of the first build.
    assert current(build_warehouse(deliver(root, "55.04", "20260801T000000Z-first"))) == before


def names(lake: Lake, key: str) -> dict[str, list[str]]:
    """The files of a table by month."""
    return {month: [file.name for file in lake.files(key, month)] for month in lake.periods(key)}


def test_a_restated_month_makes_its_own_months_alone(built_company: Company, tmp_path: Path) -> None:
    company = built_company.copy(tmp_path)
    models = [model for model in load_catalog().ordered if model.stored and model.grain == "month"]
    monthly = [model.key for model in models]
    assert set(PARTS) < set(monthly)
    lake = Warehouse(load_settings(company.config)).lake
    before = {key: names(lake, key) for key in monthly}
    # The months of a first build are one commit each table.
    assert {key: lake.record(key)["version"] for key in monthly} == dict.fromkeys(monthly, 0)
    company.deliver(JULY, "50.00")
    restated = build_warehouse(company.config, [model.name for model in models]).lake
    after = {key: names(restated, key) for key in monthly}
    assert {key: n[AUGUST] for key, n in after.items()} == {key: n[AUGUST] for key, n in before.items()}
    for key in PARTS:
        # No month is made twice, and what has no line of July's is made of nothing else.
        assert restated.record(key)["version"] == 1
        assert after[key][JULY] != before[key][JULY]
    assert restated.contents("staging/stg_aws__pod_hourly", JULY) == lake.contents("staging/stg_aws__pod_hourly", JULY)
    assert restated.contents("core/fct_ledger_piece", JULY) != lake.contents("core/fct_ledger_piece", JULY)
