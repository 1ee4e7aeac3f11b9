"""Upgrade and rollback: a warehouse that version 0.1.0 built, with keys of that version, and one of a newer version.

The company is the one of support/small_company.py: its GPU run costs 110.08 USD, its Trainium run 4 x 21.50.
"""

from __future__ import annotations

import json
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.commands import run_command
from support.small_company import AUGUST, Company

from pipelines.base.parse import parse_json, parse_toml
from pipelines.config.settings import load_settings
from pipelines.migrate.command import _differences, renamed_config
from pipelines.models.warehouse import Warehouse

BUILT = Path(__file__).resolve().parents[1] / "support" / "warehouse-0.1.0.tar.xz"


@pytest.fixture
def old_company(tmp_path: Path) -> Path:
    with tarfile.open(BUILT) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "trainledger.toml"


def test_a_dry_run_names_what_would_change_and_changes_nothing(old_company, capsys):
    before = {path: path.read_bytes() for path in sorted(old_company.parent.rglob("*")) if path.is_file()}
    answer = run_command(capsys, "migrate", "--dry-run", "--config", str(old_company))
    assert answer.code == 0
    assert "key 'told_on' is now 'reported_on'" in answer.out
    assert "Publication 1 is of version 0.1.0" in answer.out
    assert {path: path.read_bytes() for path in before} == before


def test_keys_are_renamed_and_totals_and_earlier_publications_stay(old_company, capsys):
    was = old_company.read_text().replace("\n", "\r\n")
    old_company.write_bytes(was.encode())
    old_company.chmod(0o600)
    assert "rename it" in run_command(capsys, "build", "--config", str(old_company)).err

    answer = run_command(capsys, "migrate", "--config", str(old_company))
    assert answer.code == 0, answer.err
    assert "Every invoice and every run of publication 1 has the same totals in publication 2." in answer.out

    # Comments, values and ends of lines are as they were.
    now = old_company.read_bytes().decode()
    backup = old_company.with_name("trainledger.toml.bak")
    assert backup.read_bytes() == was.encode()
    assert backup.stat().st_mode & 0o777 == 0o600
    assert now == was.replace("told_on", "reported_on").replace("spike_run", "pilot_run").replace(
        ".leans]", ".maturity]"
    )
    costs = "select run_id, round(effective_cost_usd, 2) as cost from mart_run_cost order by 1"
    answer = run_command(capsys, "query", "--csv", costs, "--config", str(old_company))
    assert answer.out.split() == ["run_id,cost", "gpu-1,110.08", "trn-1,86.00"]

    # The publication from before stays readable under its own names.
    record = old_company.parent / "warehouse/publications/000001.json"
    moment = parse_json(record.read_bytes())["published_at"].replace(" ", "T")
    old_table = "select count(*) as n from mart.mart_run_timeline"
    answer = run_command(capsys, "query", "--as-of", moment, "--csv", old_table, "--config", str(old_company))
    assert answer.out.startswith("n\n"), answer.err
    refused = run_command(capsys, "query", "--csv", old_table, "--config", str(old_company))
    assert "mart_run_timeline does not exist" in refused.err


def test_a_total_that_changed_with_the_upgrade_is_named(old_company, capsys):
    import polars as pl

    (mart,) = (old_company.parent / "warehouse/tables/marts/mart_run_cost").glob("*.parquet")
    rows = pl.read_parquet(mart)
    is_gpu, amount = pl.col("run_id") == "gpu-1", pl.Decimal(38, 10)
    # One run cost another amount, of the other it was unknown: neither is zero.
    rows.with_columns(
        pl.when(is_gpu).then(pl.lit("110.09").cast(amount)).otherwise("billed_cost_usd").alias("billed_cost_usd"),
        pl.when(is_gpu).then("effective_cost_usd").alias("effective_cost_usd"),
    ).write_parquet(mart)
    answer = run_command(capsys, "migrate", "--config", str(old_company))
    assert answer.code == 1
    # It compares again when it is run again, as after a kill.
    assert run_command(capsys, "migrate", "--config", str(old_company)).err == answer.err.splitlines(True)[-1]
    assert "2 totals differ from publication 1, first: mart_run_cost gpu-1: billed_cost_usd was 110.09" in answer.err
    warehouse = Warehouse(load_settings(old_company))
    before, after = warehouse.lake.publications.all()
    assert [*_differences(warehouse, "marts/mart_run_cost", before, after)][1].startswith(
        "mart_run_cost trn-1: effective_cost_usd was unknown and is 86.0"
    )


@pytest.mark.parametrize("words", [("compare", "llama"), ("explain", "run", "trn-1"), ("report", "--terminal")])
def test_marts_of_another_version_that_lack_a_column_are_named_by_it(old_company, words, capsys):
    old_company.write_text(renamed_config(old_company)[0])
    answer = run_command(capsys, *words, "--config", str(old_company))
    assert answer.code == 2
    assert answer.error.startswith("Publication 1 was made by revision 0.1.0+0b4f3570.333f6418; this is ")


def test_what_is_compared_stays_whatever_retention_keeps(old_company, capsys):
    text = old_company.read_text().replace('"warehouse"\n', '"warehouse"\nretention = {days = 1}\n')
    old_company.write_text(text)
    record = old_company.parent / "warehouse/publications/000001.json"
    # Neither of the day that is kept nor, but on the first of a month, the last of its month.
    published_at = f"{datetime.now(UTC) - timedelta(hours=25)}"
    record.write_text(json.dumps(parse_json(record.read_bytes()) | {"published_at": published_at}))
    answer = run_command(capsys, "migrate", "--config", str(old_company))
    assert (answer.code, record.exists()) == (0, True), answer.err
    assert "of publication 1 has the same totals in publication 2" in answer.out


def test_a_key_that_is_also_in_a_value_is_left_to_its_owner(old_company, capsys):
    text = old_company.read_text().replace('name = "llama-port"', 'name = "our told_on = never"')
    old_company.write_text(text)
    answer = run_command(capsys, "migrate", "--config", str(old_company))
    assert answer.code == 2
    assert "rename by hand" in answer.err
    assert old_company.read_text() == text
    assert parse_toml(text.encode())


@pytest.fixture
def newer(built_company: Company, tmp_path: Path) -> Company:
    """A warehouse with publication 1 of this version and publication 2 of version 9.1."""
    company = built_company.copy(tmp_path)
    records = company.warehouse / "publications"
    record = parse_json((records / "000001.json").read_bytes())
    record |= {"number": 2, "code_revision": "9.1.0+0123abcd.4567cdef"}
    (records / "000002.json").write_text(json.dumps(record))
    return company


@pytest.mark.parametrize("words", [("build",), ("prune",), ("migrate",), ("migrate", "--dry-run")])
def test_what_a_newer_version_published_is_not_built_on(newer: Company, words: tuple[str, ...], capsys) -> None:
    newer.deliver(AUGUST, "20.00")
    before = {path: path.read_bytes() for path in sorted(newer.warehouse.rglob("*.json"))}
    answer = run_command(capsys, *words, "--config", str(newer.config))
    assert answer.code == 2
    assert f"{newer.warehouse}: publication 2 was made by trainledger 9.1.0 and this is " in answer.err
    assert "install 9.1.0 or newer" in answer.err
    assert {path: path.read_bytes() for path in sorted(newer.warehouse.rglob("*.json"))} == before


def test_what_a_newer_version_published_is_read_where_its_record_is_understood(newer: Company, capsys) -> None:
    runs = ("query", "--csv", "select count(*) as n from mart_run_cost", "--config", str(newer.config))
    assert run_command(capsys, *runs).out.split() == ["n", "2"]

    record = newer.warehouse / "publications" / "000002.json"
    record.write_text(json.dumps(parse_json(record.read_bytes()) | {"sealed_by": "kms"}))
    answer = run_command(capsys, *runs)
    assert answer.code == 2
    assert "000002.json was made by trainledger 9.1.0" in answer.err


def test_a_rollback_removes_the_record_and_builds_on_the_one_before(newer: Company, capsys) -> None:
    (newer.warehouse / "publications" / "000002.json").unlink()
    answer = run_command(capsys, "build", "--config", str(newer.config))
    assert (answer.code, answer.out) == (0, "Nothing changed since publication 1; nothing was done.\n")
