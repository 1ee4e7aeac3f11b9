"""Jobs of two months side by side, and the build that publishes what they made.

The second job runs whole while the first stands at a step: every order of two processes is one of these, or several.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ledgers import build_with, catalog_of
from support.s3_company import deliver, settings
from support.small_company import AUGUST, JULY, Company, found

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.settings import Settings, load_settings
from pipelines.models.build import Builder
from pipelines.models.built import BuildRecords, Built
from pipelines.models.catalog import load_catalog
from pipelines.models.command import build_parts
from pipelines.models.publish import plan
from pipelines.models.refresh import refresh_parts
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse import lock
from pipelines.warehouse.lock import TABLES, BuildBusy
from pipelines.warehouse.stores import open_store

# Before any table, before and after the tables of runs are made from the bills of all months.
MOMENTS = ["bill", "staging/stg_aws__charge_kind", "core/fct_charge"]
# The tables by month, which the jobs make, what they rest on, and some of those that a build makes of all months.
BY_MONTH = [model.name for model in load_catalog().ordered if model.grain != "whole"]
SOME = (*BY_MONTH, "mart_run_cost", "mart_cost_ledger_daily")


@pytest.fixture
def fewer_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = catalog_of(SOME)
    monkeypatch.setattr("pipelines.models.build.load_catalog", lambda: catalog)


def job(config: Settings, month: str, at: str = "", then: Callable[[], Any] = lambda: None) -> list[str]:
    """The steps of a month job; `then` is called when the step `at` is done."""
    done: list[str] = []

    def report(what: str, period: str) -> None:
        done.append(what)
        if what == at:
            then()

    builder = Builder(Warehouse(config))
    with builder.lake.lock(month):
        refresh_parts(builder, plan(builder.warehouse), [month], lambda sentence: None, report)
    assert not at or at in done
    return done


def published(config: Settings) -> dict[str, list[str]]:
    """The files of each table, which are named by their content, after a build has published."""
    builder = build_with(config)
    publication = builder.lake.publications.newest()
    assert publication is not None and publication.number == 1
    return {key: table["files"] for key, table in publication.tables.items()}


def in_one_build(company: Company) -> dict[str, list[str]]:
    record = json.loads((company.warehouse / "publications" / "000001.json").read_text())
    return {key: table["files"] for key, table in record["tables"].items()}


@pytest.mark.usefixtures("fewer_tables")
@pytest.mark.parametrize("moment", MOMENTS)
def test_two_months_built_side_by_side_are_published_as_by_one_build(
    moment: str, built_company: Company, tmp_path: Path
) -> None:
    config = load_settings(found(tmp_path).config)
    seen = []
    job(config, JULY, moment, lambda: seen.append(job(config, AUGUST)))
    assert seen and seen[0][-1] == "core/fct_ledger_piece"
    assert Warehouse(config).lake.publications.newest() is None
    side_by_side, at_once = published(config), in_one_build(built_company)
    assert {"core/fct_charge", "marts/mart_run_cost"} < side_by_side.keys()
    assert side_by_side == {key: at_once[key] for key in side_by_side}


@pytest.mark.slow
def test_two_months_are_built_side_by_side_on_s3(
    built_company: Company, s3: Any, s3_endpoint: str, tmp_path: Path
) -> None:
    company = found(tmp_path / "company")
    deliver(company, s3)
    config = settings(company, s3_endpoint)
    job(config, JULY, "core/fct_charge", lambda: job(config, AUGUST))
    assert published(config) == in_one_build(built_company)


def test_a_build_leaves_alone_what_month_jobs_made(built_company: Company, tmp_path: Path) -> None:
    config = load_settings(found(tmp_path).config)
    for month in (JULY, AUGUST):
        job(config, month)
    made: list[Built] = []
    builder = Builder(Warehouse(config))
    with builder.lake.lock():
        made += builder.build_steps(step for _, phase in builder.phases([JULY, AUGUST]) for step in phase)
    # No run is open, so no month changes what another is made from.
    by_month = [built for built in made if built.period]
    assert by_month and all(built.was_current for built in by_month)


def test_a_month_that_another_job_has_is_refused(tmp_path: Path) -> None:
    config = load_settings(found(tmp_path).config)
    refused = []

    def rivals() -> None:
        for attempt in (lambda: job(config, JULY), lambda: build_with(config)):
            with pytest.raises(BuildBusy) as busy:
                attempt()
            refused.append(str(busy.value).partition(" is being built by process ")[0])

    job(config, JULY, "bill", rivals)
    # A whole build names the month that keeps it out.
    assert refused == [f"{JULY} of {config.warehouse.location}"] * 2


def test_a_month_that_is_not_delivered_is_refused(tmp_path: Path) -> None:
    config = load_settings(found(tmp_path).config)
    with pytest.raises(UsageError) as refused:
        build_parts(config, Console(), [JULY, "../2026-09"])
    assert str(refused.value) == f"No billing source delivers ../2026-09; choose a delivered month ({JULY}, {AUGUST})."
    assert not list(tmp_path.rglob("*2026-09*"))


def test_the_shared_tables_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_settings(found(tmp_path).config)
    other, sentences = Warehouse(config), []
    holding = other.lake.lock(TABLES)

    def release(sentence: str) -> None:
        sentences.append(sentence)
        holding.__exit__(None, None, None)

    monkeypatch.setattr(lock, "PAUSE", 0.01)
    holding.__enter__()
    builder = Builder(Warehouse(config))
    refresh_parts(builder, plan(builder.warehouse), [JULY], release)
    (sentence,) = sentences
    assert sentence.startswith(
        f"A table that all months of {config.warehouse.location} share is being built by process "
    )


def test_records_of_two_months_are_both_kept(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    one, other = BuildRecords(store), BuildRecords(store)
    built = {
        month: Built("core/fct_charge", month, f"seal of {month}", 1, {}, [], was_current=False)
        for month in (JULY, AUGUST)
    }
    for records, month in ((one, JULY), (other, AUGUST), (one, JULY)):
        # Each has read what was there before the other wrote.
        records.find("core/fct_charge", month, "")
        records.write([built[month]])
    after = BuildRecords(store)
    assert all(after.find("core/fct_charge", month, f"seal of {month}") for month in built)
