"""A delivery that other code has converted: converted again in place where it can be, else as it is."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from support.cur_exports import CUR2_LINE, csv_text, cur2_export, packed, parquet, source, stored

from pipelines.config.settings import Settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.billing import exports
from pipelines.ingest.billing.columns import CUR
from pipelines.ingest.billing.delivery import superseded
from pipelines.ingest.billing.raw import PublishedBill, RawBill
from pipelines.warehouse.storage_local import LocalStore

JULY, AUGUST = "2026-07", "2026-08"


@cache
def files() -> dict[str, bytes]:
    return {"a-1.csv.gz": packed(csv_text([CUR2_LINE])), "a-2.snappy.parquet": parquet([CUR2_LINE] * 2)}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    cur2_export(tmp_path / "bucket", files())
    return cur2_export(tmp_path / "bucket", files(), month=AUGUST)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were fetched from the source since."""
    names: list[str] = []
    plain = LocalStore.download
    monkeypatch.setattr(
        LocalStore, "download", lambda store, key, path: (names.append(Path(key).name), plain(store, key, path))[1]
    )
    return names


def raw_bill(export: Path, tmp_path: Path) -> RawBill:
    return RawBill(tmp_path / "raw", Settings.model_construct(billing=(source(export),), tags={}))


def other_code(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(exports, "code_digest", lambda *modules: "of other code")
    return exports.converter_of(CUR)


def test_a_csv_is_converted_again_and_parquet_is_not_fetched_twice(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fetched: list[str]
) -> None:
    first, _ = stored(export, tmp_path / "raw")
    before = raw_bill(export, tmp_path).fingerprint(CUR.table, JULY)
    fetched.clear()
    converter = other_code(monkeypatch)
    again, _ = stored(export, tmp_path / "raw")
    assert fetched == ["a-1.csv.gz"] * 2
    assert (first.converter != converter, again.converter) == (True, converter)
    assert (again.delivery, again.folder, again.files) == (first.delivery, first.folder, first.files)
    assert (again.folder / again.files[1].name).read_bytes() == files()["a-2.snappy.parquet"]
    # What is made from it is made again.
    assert raw_bill(export, tmp_path).fingerprint(CUR.table, JULY) != before
    # Once: the third look finds it.
    fetched.clear()
    stored(export, tmp_path / "raw")
    assert fetched == []
    assert [path.name for path in again.folder.parent.iterdir()] == [again.folder.name]


def test_what_an_older_version_stored_is_converted_again(export: Path, tmp_path: Path, fetched: list[str]) -> None:
    first, _ = stored(export, tmp_path / "raw")
    record = json.loads((first.folder / "delivery.json").read_text())
    del record["converter"]
    (first.folder / "delivery.json").write_text(json.dumps(record))
    fetched.clear()
    assert stored(export, tmp_path / "raw")[0] == first
    assert fetched == ["a-1.csv.gz"]


def test_a_delivery_whose_files_are_gone_stays_as_it_is(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = stored(export, tmp_path / "raw")
    next(export.glob(f"data/*{JULY}/*/*.csv.gz")).unlink()
    other_code(monkeypatch)
    assert stored(export, tmp_path / "raw")[0] == first


def test_a_month_whose_manifest_is_gone_stays_as_it_is(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = stored(export, tmp_path / "raw")
    before = raw_bill(export, tmp_path).fingerprint(CUR.table, JULY)
    next(export.glob(f"metadata/*{JULY}/*.json")).unlink()
    converter = other_code(monkeypatch)
    bill = raw_bill(export, tmp_path)
    assert [raw.converter for raw in bill.ingest(JULY)] == [first.converter]
    assert [raw.converter for raw in bill.ingest(AUGUST)] == [converter]
    assert bill.fingerprint(CUR.table, JULY) == before


def test_where_a_replaced_delivery_lies_is_known_as_long_as_a_publication_names_it(
    export: Path, tmp_path: Path
) -> None:
    first, _ = stored(export, tmp_path / "raw")
    record = first.folder.with_name(f"{first.folder.name}.json")
    cur2_export(tmp_path / "bucket", {"b-1.csv.gz": packed(csv_text([CUR2_LINE]))})
    bill = raw_bill(export, tmp_path)
    bill.ingest(JULY)
    bill.forget_superseded()
    assert superseded(first.folder) == first.delivery and not first.folder.exists()
    bill.forget_unpublished({first.delivery.fingerprint})
    assert record.exists()
    bill.forget_unpublished(())
    assert not record.exists()


def test_an_earlier_publication_finds_its_bill_after_other_code_converted_it(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [
        {"source": "payer", "billing_period": raw.delivery.billing_period, "fingerprint": raw.delivery.fingerprint}
        for raw in stored(export, tmp_path / "raw")
    ]
    other_code(monkeypatch)
    bill = raw_bill(export, tmp_path)
    for month in (JULY, AUGUST):
        bill.ingest(month)
    bill.forget_superseded()
    settings = Settings.model_construct(billing=(), tags={})
    earlier = PublishedBill(tmp_path / "raw", settings, named)
    with DuckDBEngine() as engine:
        earlier.view(engine, CUR.table, JULY)
        assert engine.query(f"select count(*) from {CUR.table}").item() == 3
