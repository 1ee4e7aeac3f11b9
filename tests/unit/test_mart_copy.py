"""marts.duckdb: what a build changes of the copy, and when it writes all of it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest
from support.ledgers import build_warehouse
from support.small_company import AUGUST, JULY, Company

from pipelines.base.errors import CheckError
from pipelines.config.settings import load_settings
from pipelines.engine import duckdb as engine
from pipelines.models.mart_copy import mart_files, stage_copy, write_copy
from pipelines.models.warehouse import Warehouse


@pytest.fixture
def company(built_company: Company, tmp_path: Path) -> Company:
    return built_company.copy(tmp_path)


def held(database: Path) -> dict[str, list[tuple]]:
    """The rows of every mart in a copy."""
    with duckdb.connect(database, read_only=True) as copy:
        named = copy.sql("select schema_name || '.' || table_name from duckdb_tables()").fetchall()
        return {name: copy.sql(f"from {name} order by all").fetchall() for (name,) in sorted(named)}


def published(company: Company, place: Path) -> dict[str, list[tuple]]:
    """The rows of every mart of the newest publication, by a copy written at once."""
    warehouse = Warehouse(load_settings(company.config))
    publication = warehouse.lake.current()
    assert publication is not None
    engine.write_database(place, mart_files(warehouse, publication.tables))
    return held(place)


@pytest.fixture
def written_whole(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The copies that were written whole."""
    places: list[Path] = []
    write = engine.write_database

    def watched(path: Path, tables: Mapping) -> None:
        places.append(path)
        write(path, tables)

    monkeypatch.setattr(engine, "write_database", watched)
    return places


def test_a_build_changes_the_copy_in_place(company: Company, written_whole: list[Path]) -> None:
    """A restated month, and then a month that is read no more."""
    company.deliver(JULY, "50.00")
    build_warehouse(company.config)
    restated = held(company.warehouse / "marts.duckdb")
    assert restated == published(company, company.root / "whole.duckdb")
    assert {row[0] for row in restated["detail.detail_commitment_use_daily"]} == {JULY, AUGUST}
    config = company.config.read_text()
    company.config.write_text(config.replace("[[billing]]\n", f'[[billing]]\nfirst_month = "{AUGUST}"\n'))
    build_warehouse(company.config)
    kept = held(company.warehouse / "marts.duckdb")
    assert kept == published(company, company.root / "whole.duckdb")
    assert {row[0] for row in kept["detail.detail_commitment_use_daily"]} == {AUGUST}
    assert [place for place in written_whole if place.name != "whole.duckdb"] == []


def test_a_copy_that_somebody_changed_is_written_whole(company: Company, written_whole: list[Path]) -> None:
    place = company.warehouse / "marts.duckdb"
    with duckdb.connect(place) as copy:
        copy.execute("delete from mart.mart_price_book")
    warehouse = Warehouse(load_settings(company.config))
    publication = warehouse.lake.current()
    assert publication is not None
    write_copy(warehouse, publication)
    assert len(written_whole) == 1
    assert held(place) == published(company, company.root / "whole.duckdb")


def test_a_copy_with_other_pseudonyms_is_written_whole(
    company: Company, written_whole: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was replaced in place can still be read from the gaps of a database file."""
    monkeypatch.setenv("TRAINLEDGER_PRIVACY__KEY", "k" * 32)
    company.config.write_text(company.config.read_text() + '\n[privacy]\npseudonyms = ["accounts"]\n')
    warehouse = Warehouse(load_settings(company.config))
    publication = warehouse.lake.current()
    assert publication is not None
    write_copy(warehouse, publication)
    assert len(written_whole) == 1


def test_nothing_is_published_over_a_mart_that_holds_other_rows(company: Company) -> None:
    warehouse = Warehouse(load_settings(company.config))
    publication = warehouse.lake.current()
    assert publication is not None
    (file,) = warehouse.lake.files("marts/mart_price_book")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckError, match=r"mart_price_book.* changed after publishing; remove it and run"):
        stage_copy(warehouse, publication.tables)
