"""What is read of a lake: by other programs, once, and named where it is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.lake_builds import MONTHLY, WHOLE, seal, staged
from support.lake_places import Place, builds, commit

from pipelines.base.errors import SourceError


def test_others_read_the_tables(place: Place, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    lake = place.lake()
    commit(lake, tmp_path, 1, "2026-01")
    before = commit(lake, tmp_path, 1, "2026-02")
    commit(lake, tmp_path, 2, "2026-02")
    where, options = place.table(MONTHLY)
    expected = [(1, 0, "2026-01"), (1, 1, "2026-01"), (1, 2, "2026-01")]
    expected += [(2, 0, "2026-02"), (2, 1, "2026-02"), (2, 2, "2026-02")]
    assert sorted(pl.scan_delta(where, storage_options=options).collect().rows()) == expected
    one_month = pl.scan_delta(where, storage_options=options).filter(pl.col("billing_period") == "2026-02")
    assert sorted(one_month.collect().rows()) == expected[3:]
    assert pl.scan_delta(where, version=before, storage_options=options).collect()["build"].unique().to_list() == [1]
    delta = DeltaTable(where, storage_options=options)
    assert delta.to_pyarrow_table().num_rows == 6
    assert delta.metadata().partition_columns == ["billing_period"]


def test_signs_of_a_uri_mean_nothing_in_a_folder_name(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    root = tmp_path / "ware house #1 100%"
    root.mkdir()
    lake = Place(str(root), tmp_path).lake()
    for number in (1, 2):
        commit(lake, tmp_path, number, "2026-01")
    assert builds(lake.files(MONTHLY)) == [2]
    assert DeltaTable(root / "tables" / MONTHLY).to_pyarrow_table().num_rows == 3


def test_what_is_not_there_is_nothing_or_named(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A store that answers wrongly for a while is read again; here it answers rightly.
    monkeypatch.setattr("pipelines.warehouse.delta._PAUSES", (0.01, None))
    lake = place.lake()
    assert lake.files("marts/none") == []
    assert lake.fingerprint("marts/none") is None
    assert lake.periods("marts/none") == []
    assert lake.record("marts/none")["version"] == -1
    commit(lake, tmp_path, 1, None)
    with pytest.raises(SourceError, match=r"mart_small.* version 7"):
        lake.files(WHOLE, version=7)


def test_a_file_that_went_missing_is_named(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    commit(lake, tmp_path, 1, None)
    (name,) = [path.name for path in lake.files(WHOLE)]
    from pipelines.warehouse.stores import open_store

    open_store(place.location, endpoint_url=place.endpoint).delete(f"tables/{WHOLE}/{name}")
    # A build makes again what the newest publication shows, and nothing else.
    with pytest.raises(SourceError, match=f"{name} is missing; restore it, or run "):
        place.lake("fresh").files(WHOLE)


def test_a_log_that_lost_an_entry_is_named(folder: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.warehouse.delta._PAUSES", (None,))
    for number in range(3):
        commit(folder.lake(), tmp_path, number, None)
    (Path(folder.location) / f"tables/{WHOLE}/_delta_log/{1:020d}.json").unlink()
    fix = r"has a log that is not listed whole \([^{]*found gap\); run it again, or restore its _delta_log\.$"
    with pytest.raises(SourceError, match=fix):
        folder.lake().files(WHOLE)


def test_a_look_at_many_tables_opens_each_once(folder: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import deltalake

    writer, tables = folder.lake(), [f"marts/mart_{number}" for number in range(25)]
    for table in tables:
        writer.commit(table, [staged(tmp_path, 1)], seal(table), None)
    opened: list[str] = []
    plain = deltalake.DeltaTable.__init__

    def counted(self: Any, uri: Any, *arguments: Any, **options: Any) -> None:
        opened.append(uri)
        plain(self, uri, *arguments, **options)

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", counted)
    lake = folder.lake()
    with lake.lock():
        for table in tables * 2:
            assert lake.fingerprint(table) == seal(table)
            assert len(lake.files(table)) == 1
            assert len(lake.contents(table)) == 1
        assert [lake.record(table)["version"] for table in tables] == [0] * len(tables)
    assert len(opened) == 25


def test_a_file_is_downloaded_once(s3: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.warehouse.storage_s3 import S3Store

    commit(s3.lake(), tmp_path, 1, None)
    downloads: list[str] = []
    plain = S3Store.download
    monkeypatch.setattr(S3Store, "download", lambda self, key, path: (downloads.append(key), plain(self, key, path)))
    # What this machine committed is at hand; another fetches it once.
    s3.lake().files(WHOLE)
    assert downloads == []
    for _ in range(2):
        assert builds(s3.lake("elsewhere").files(WHOLE)) == [1]
    assert len(downloads) == 1
