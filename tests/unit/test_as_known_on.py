"""`report --as-of` and `query --as-of`: the figures as they were known on a date, and the same page each time."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from support.commands import run_command
from support.ledgers import publish_tables
from support.small_company import AUGUST, Company

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.settings import Settings, load_settings
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.query.command import query
from pipelines.report.command import write_report

# By the queries, the reports and the comparison of these tests.
READ = ("mart_run_cost", "mart_epoch_cost", "mart_silicon_comparison", "mart_portfolio", "mart_cost_summary_monthly")
COST = "select sum(effective_cost_usd) as cost from mart_run_cost"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def settings(built_company: Company, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Published on 3 September at 10:00 UTC as delivered, 110.08 + 4 x 21.50 = 196.08 USD of runs; restated to
    110.08 + 4 x 20.00 = 190.08 USD on the 5th at 23:30."""
    company = built_company.copy(tmp_path_factory.mktemp("restated"))
    company.deliver(AUGUST, "20.00")
    publish_tables(company.config, READ)
    for number, moment in ((1, "2026-09-03T10:00:00+00:00"), (2, "2026-09-05T23:30:00+00:00")):
        record = company.warehouse / "publications" / f"{number:06d}.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "published_at": moment}))
    return load_settings(company.config)


def config_of(settings: Settings) -> Path:
    return Path(settings.warehouse.location).parent / "trainledger.toml"


@pytest.mark.parametrize(
    ("as_of", "cost"),
    [
        # A day holds to its last moment, in UTC.
        ("2026-09-03", "196.08"),
        ("2026-09-04", "196.08"),
        ("2026-09-05", "190.08"),
        ("2030-01-01", "190.08"),
        # A moment is taken as it is: 23:00 in UTC, then 23:30.
        ("2026-09-05T23:00:00Z", "196.08"),
        ("2026-09-06T01:30:00+02:00", "190.08"),
        (None, "190.08"),
    ],
)
def test_a_query_answers_as_of_a_date(settings: Settings, capsys: Captured, as_of: str | None, cost: str) -> None:
    query(COST, config_of(settings), as_of, as_csv=True)
    assert capsys.readouterr().out == f"cost\n{cost}00000000\n"


@pytest.fixture(scope="module")
def then(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The report of 4 September."""
    page = tmp_path_factory.mktemp("then") / "then.html"
    write_report(settings, page, Console(), "2026-09-04")
    return page.read_bytes()


def test_a_report_of_a_date_shows_the_publication_of_that_date(settings: Settings, then: bytes, tmp_path: Path) -> None:
    write_report(settings, tmp_path / "now.html", Console())
    now = (tmp_path / "now.html").read_bytes()
    # The Trainium run: 4 hours at 21.50, restated to 20.00.
    assert b"$86.00" in then and b"$80.00" not in then
    assert b"$80.00" in now and b"$86.00" not in now


def test_a_comparison_is_read_as_of_a_date(settings: Settings, capsys: Captured) -> None:
    """The Trainium run: 4 hours at 21.50, restated to 20.00."""
    command = ("compare", "--basis", "effective", "--csv", "--config", str(config_of(settings)))
    for as_of, usd in (("2026-09-04", "86"), ("2026-09-05", "80")):
        result = run_command(capsys, *command, "--as-of", as_of)
        (row,) = csv.DictReader(io.StringIO(result.out))
        assert Decimal(row["candidate_unit_cost_usd"]) == Decimal(usd)
    assert "held no publication yet on 2026-09-02" in run_command(capsys, *command, "--as-of", "2026-09-02").error


def test_reports_made_twice_of_one_publication_are_the_same_bytes(
    settings: Settings, then: bytes, tmp_path: Path
) -> None:
    write_report(settings, tmp_path / "again.html", Console(), "2026-09-04")
    assert (tmp_path / "again.html").read_bytes() == then


def test_a_date_before_the_first_publication_is_refused_with_the_first(settings: Settings) -> None:
    with pytest.raises(
        UsageError,
        match=r"held no publication yet on 2026-09-02; the first was published at 2026-09-03T10:00:00Z\.$",
    ):
        query(COST, config_of(settings), "2026-09-02", as_csv=True)


def test_after_a_prune_the_first_that_is_named_is_the_first_kept(settings: Settings, tmp_path: Path) -> None:
    """Number 2 of the 5th is kept; number 1 of the 3rd was the first."""
    kept = tmp_path / "publications" / "000002.json"
    kept.parent.mkdir()
    shutil.copyfile(Path(settings.warehouse.location) / "publications" / "000002.json", kept)
    pruned = settings.model_copy(
        update={"warehouse": settings.warehouse.model_copy(update={"location": str(tmp_path)})}
    )
    with pytest.raises(UsageError, match=r"on 2026-09-02; the first kept was published at 2026-09-05T23:30:00Z\.$"):
        published_of(Warehouse(pruned), "2026-09-02")


@pytest.mark.parametrize(
    "as_of", ["yesterday", "2026-02-30", "2026-09-04T10:00:00", "", "1756", "0001-01-01T00:00+14:00"]
)
def test_what_is_no_date_is_refused_with_one(settings: Settings, as_of: str) -> None:
    with pytest.raises(UsageError, match=r"^--as-of .* is neither a day nor a time with its zone; write 2026-08-31"):
        query(COST, config_of(settings), as_of, as_csv=True)


def test_a_column_that_an_older_version_did_not_have_is_unknown(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As new_day_count of restatements, which nothing is known of; what it had is as ever."""
    monkeypatch.setattr("pipelines.models.marts.ADDED", {"marts/mart_epoch_cost": ("billed_cost_usd",)})
    record = Path(settings.warehouse.location) / "publications" / "000001.json"
    document = json.loads(record.read_text())
    folder = Path(settings.warehouse.location) / "tables" / "marts" / "mart_epoch_cost"
    whole = pl.read_parquet(folder / document["tables"]["marts/mart_epoch_cost"]["files"][0])
    whole.drop("billed_cost_usd").write_parquet(folder / "older.parquet")
    tables = {**document["tables"], "marts/mart_epoch_cost": {"version": 0, "files": ["older.parquet"]}}
    older = replace(published_of(Warehouse(settings), "2026-09-04"), tables=tables)
    figures = "count(*) > 0, count(billed_cost_usd), count(effective_cost_usd) > 0"
    with open_marts(Warehouse(settings), older) as marts:
        assert marts.query(f"select {figures} from mart_epoch_cost").rows() == [(True, 0, True)]


def test_marts_that_an_older_version_made_otherwise_are_refused_with_both_versions(
    settings: Settings, tmp_path: Path
) -> None:
    """As where the column `run_id` was called otherwise: one mart's file stands in for another's."""
    record = Path(settings.warehouse.location) / "publications" / "000001.json"
    before = record.read_text()
    document = json.loads(before)
    folder = Path(settings.warehouse.location) / "tables" / "marts"
    epochs = folder / "mart_epoch_cost" / document["tables"]["marts/mart_epoch_cost"]["files"][0]
    (folder / "mart_run_cost" / "renamed.parquet").write_bytes(epochs.read_bytes())
    document["tables"]["marts/mart_run_cost"]["files"] = ["renamed.parquet"]
    document["code_revision"] = "0.0.9+older"
    try:
        record.write_text(json.dumps(document))
        with pytest.raises(UsageError, match=r"^Publication 1 was made by revision 0\.0\.9\+older; this is 0\.2"):
            write_report(settings, tmp_path / "old.html", Console(), "2026-09-04")
    finally:
        record.write_text(before)
