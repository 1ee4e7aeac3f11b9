"""marts.duckdb: a whole copy of the newest publication, and of nothing that changed after publishing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from support.lake_builds import open_lake
from support.ledgers import publish_tables
from support.s3_company import BUCKET, settings
from support.small_company import AUGUST, JULY, Company

from pipelines.base.console import Console
from pipelines.base.errors import CheckError
from pipelines.config.settings import load_settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.command import build_marts
from pipelines.models.marts import is_copied, mart_files, refuse_altered, view_published, write_copy
from pipelines.models.warehouse import Warehouse


@pytest.fixture
def company(built_company: Company, tmp_path: Path) -> Company:
    return built_company.copy(tmp_path)


def held(company: Company) -> dict[str, list[tuple]]:
    """The rows of every mart in the copy."""
    with duckdb.connect(company.warehouse / "marts.duckdb", read_only=True) as copy:
        named = copy.sql("select schema_name || '.' || table_name from duckdb_tables()").fetchall()
        return {name: copy.sql(f"from {name} order by all").fetchall() for (name,) in sorted(named)}


def published(company: Company) -> dict[str, list[tuple]]:
    """The rows of every mart of the newest publication, read from its files."""
    warehouse = Warehouse(load_settings(company.config))
    publication = warehouse.lake.publications.newest()
    assert publication is not None
    named = mart_files(warehouse, publication.tables).items()
    files = {name: [str(path) for path in paths] for name, paths in named}
    with duckdb.connect() as engine:
        return {name: engine.read_parquet(files[name]).order("all").fetchall() for name in sorted(files)}


def test_the_copy_follows_the_publications(company: Company) -> None:
    """A restated month, and then a month that is read no more and fewer tables."""
    company.deliver(JULY, "50.00")
    tables = ["detail_commitment_use_daily", "mart_cost_ledger_daily", "mart_run_cost"]
    publish_tables(company.config, [*tables, "mart_run_waste", "detail_run_timeline"])
    restated = held(company)
    assert restated == published(company)
    assert {row[0] for row in restated["detail.detail_commitment_use_daily"]} == {JULY, AUGUST}
    config = company.config.read_text()
    company.config.write_text(config.replace("[[billing]]\n", f'[[billing]]\nfirst_month = "{AUGUST}"\n'))
    publish_tables(company.config, tables)
    kept = held(company)
    assert kept == published(company)
    assert kept.keys() < restated.keys()
    assert {row[0] for row in kept["detail.detail_commitment_use_daily"]} == {AUGUST}


def test_a_copy_that_somebody_changed_is_replaced(company: Company) -> None:
    with duckdb.connect(company.warehouse / "marts.duckdb") as copy:
        copy.execute("delete from mart.mart_price_book")
    assert build_marts(load_settings(company.config), Console()) is False
    assert held(company) == published(company)


def test_a_damaged_copy_is_written_anew(company: Company) -> None:
    """It has the time of its publication, so the next build takes it for what it was."""
    copy = company.warehouse / "marts.duckdb"
    moment = copy.stat().st_mtime_ns
    with copy.open("r+b") as file:
        file.truncate(5000)
    os.utime(copy, ns=(moment, moment))
    company.deliver(JULY, "50.00")
    publish_tables(company.config, ["detail_commitment_use_daily", "mart_price_book"])
    assert held(company) == published(company)


def test_a_copy_that_is_removed_from_the_bucket_is_to_be_written_again(
    built_company: Company, tmp_path: Path, s3: Any, s3_endpoint: str
) -> None:
    warehouse = Warehouse(settings(Company(tmp_path, built_company.events), s3_endpoint))
    publication = warehouse.lake.publish(
        {"code_revision": "1", "inputs": {"deliveries": [], "tags": {}}, "tables": {}, "checks": []}
    )
    assert write_copy(warehouse, publication, None) == ""
    assert is_copied(warehouse, publication)
    s3.delete_object(Bucket=BUCKET, Key="ledger/marts.duckdb")
    assert not is_copied(warehouse, publication)


def test_nothing_is_published_over_a_mart_that_holds_other_rows(company: Company) -> None:
    warehouse = Warehouse(load_settings(company.config))
    publication = warehouse.lake.publications.newest()
    assert publication is not None
    (file,) = warehouse.lake.files("marts/mart_price_book")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckError, match=r"mart_price_book.* changed after publishing; remove it and run"):
        refuse_altered(warehouse, publication.tables)


def test_what_an_older_version_kept_at_another_address_is_found(tmp_path: Path) -> None:
    old, new = "core/fct_restated_figure", "detail/detail_restated_figure"
    lake, file = open_lake(str(tmp_path), tmp_path / "cache"), tmp_path / "figure.parquet"
    pl.DataFrame({"figure_key": ["steady"], "delivery_no": [2]}).write_parquet(file)
    with lake.lock():
        lake.commit(old, [file], "0" * 16, None)
        tables = {old: {"version": 0, "files": [path.name for path in lake.files(old)]}}
        lake.publish({"code_revision": "", "inputs": {"deliveries": [], "tags": {}}, "tables": tables, "checks": []})
    with DuckDBEngine() as engine:
        view_published(engine, lake, "published_restated_figure", new)
        assert engine.query("select figure_key, delivery_no from published_restated_figure").rows() == [("steady", 2)]
