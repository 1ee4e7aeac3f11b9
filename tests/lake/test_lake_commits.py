"""What a commit changes of a table, and what stays of it."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.lake_builds import MONTHLY, WHOLE, seal, staged
from support.lake_places import Place, actions, builds, commit
from support.s3_faults import NAMED, s3_faults

from pipelines.base.errors import SourceError, UnreachableError
from pipelines.warehouse import delta
from pipelines.warehouse.lake import Slice
from pipelines.warehouse.retention import DATA_FILE
from pipelines.warehouse.storage_s3 import S3Store


def test_a_commit_replaces_its_month_and_keeps_the_others(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    commit(lake, tmp_path, 1, "2026-01")
    before = commit(lake, tmp_path, 1, "2026-02")
    kept = lake.files(MONTHLY, "2026-01")
    after = commit(lake, tmp_path, 2, "2026-02")
    assert after == before + 1
    assert lake.files(MONTHLY, "2026-01") == kept
    assert builds(lake.files(MONTHLY, "2026-02")) == [2]
    assert builds(lake.files(MONTHLY)) == [1, 2]
    assert builds(lake.files(MONTHLY, version=before)) == [1]
    assert builds(lake.files(MONTHLY, "2026-02", version=before)) == [1]
    assert lake.periods(MONTHLY) == ["2026-01", "2026-02"]
    assert lake.record(MONTHLY)["version"] == after
    # Another process, with an empty cache, finds the same bytes.
    other = place.lake("elsewhere")
    assert [p.read_bytes() for p in other.files(MONTHLY)] == [p.read_bytes() for p in lake.files(MONTHLY)]


def test_a_table_without_months_is_replaced_whole(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    first = commit(lake, tmp_path, 1, None)
    commit(lake, tmp_path, 2, None)
    assert builds(lake.files(WHOLE)) == [2]
    assert builds(lake.files(WHOLE, version=first)) == [1]
    assert lake.periods(WHOLE) == []


def test_a_commit_has_the_credentials_of_its_time(s3: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a role change every hour; the ones that a table was opened with reach only another address here."""
    commit(s3.lake(), tmp_path, 1, None)
    lake, now = s3.lake(), S3Store.delta_options
    with s3_faults(str(s3.endpoint)) as expired:
        with monkeypatch.context() as before:
            before.setattr(S3Store, "delta_options", lambda store: now(store) | {"AWS_ENDPOINT_URL": expired.url})
            assert lake.fingerprint(WHOLE) == seal(WHOLE, None, 1)
        expired.begin(lambda request: "500")
        assert commit(lake, tmp_path, 2, None) == 1
        assert expired.count == 0


@pytest.mark.parametrize(("code", "fix"), [("ExpiredToken", "renew them"), ("AccessDenied", "grant s3:ListBucket")])
def test_a_table_that_s3_refuses_is_reported_with_the_fix(
    code: str, fix: str, s3: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(s3.lake(), tmp_path, 1, None)
    monkeypatch.setitem(NAMED, "503", (400, code))
    with s3_faults(str(s3.endpoint)) as refusing:
        lake = Place(s3.location, tmp_path, refusing.url).lake()
        refusing.begin(lambda request: "503")
        with pytest.raises(SourceError, match=rf"\A{s3.location}/tables/{WHOLE}: .*{fix}"):
            lake.fingerprint(WHOLE)


def test_a_file_is_named_by_what_it_is_made_from_and_what_it_holds(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    held = hashlib.sha256(staged(tmp_path / "in", 1).read_bytes()).hexdigest()[:16]
    commit(lake, tmp_path, 1, None)
    assert [path.name for path in lake.files(WHOLE)] == [f"{seal(WHOLE, None, 1)}-{held}.parquet"]
    assert lake.fingerprint(WHOLE) == seal(WHOLE, None, 1)
    assert lake.contents(WHOLE) == [held]
    assert lake.fingerprint(MONTHLY, "2026-01") is None
    commit(lake, tmp_path, 1, "2026-01")
    assert lake.fingerprint(MONTHLY, "2026-01") == seal(MONTHLY, "2026-01", 1)
    assert lake.fingerprint(MONTHLY, "2026-02") is None


def test_the_same_rows_in_other_files_are_the_same_content(place: Place, tmp_path: Path) -> None:
    lake = place.lake()

    def commit_rows(rows: str, *files: Path) -> list[str]:
        lake.commit_slices(MONTHLY, [Slice("2026-01", files, seal(f"{rows}{len(files)}"), rows)])
        return lake.contents(MONTHLY)

    whole = staged(tmp_path / "whole", 1, "2026-01")
    halves = [tmp_path / f"half-{number}.parquet" for number in range(2)]
    for path, rows in zip(halves, (pl.read_parquet(whole).head(1), pl.read_parquet(whole).tail(2)), strict=True):
        rows.write_parquet(path)
    commit(lake, tmp_path, 1, "2026-02")
    held = commit_rows("three rows", whole)
    assert commit_rows("three rows", *halves) == held
    files = lake.files(MONTHLY, "2026-01")
    assert (len(files), pl.read_parquet(files).height) == (2, 3)
    assert commit_rows("other rows", staged(tmp_path / "other", 2, "2026-01")) != held
    assert lake.fingerprint(MONTHLY, "2026-01") == seal("other rows1")


def test_a_changed_file_is_found_also_where_its_rows_name_it(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    lake.commit_slices(WHOLE, [Slice(None, (staged(tmp_path, 1),), seal("whole"), "three rows")])
    (file,) = lake.files(WHOLE)
    assert re.fullmatch(DATA_FILE, file.name) and file.name.count(".") == 2
    assert lake.altered(WHOLE, [file.name]) == []
    file.write_bytes(file.read_bytes().replace(b"PAR1", b"PAR2"))
    assert lake.altered(WHOLE, [file.name]) == [file]


def test_the_same_content_committed_twice_is_one_file_and_one_version(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    for month in (None, "2026-01"):
        version = commit(lake, tmp_path, 1, month)
        table = MONTHLY if month else WHOLE
        files = lake.files(table)
        # A build killed after its commit may commit the same again.
        assert commit(lake, tmp_path, 1, month) == version
        assert lake.files(table) == files
        assert builds(files) == [1]
        assert not (tmp_path / "in" / f"{month or 'whole'}.parquet").exists()


def test_no_version_adds_and_removes_one_path(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    for number in (1, 1, 2, 1):
        commit(lake, tmp_path, number, None)
    # The Delta protocol forbids both of one path in one version; readers would differ.
    for version in actions(folder, WHOLE):
        added = {action["add"]["path"] for action in version if "add" in action}
        removed = {action["remove"]["path"] for action in version if "remove" in action}
        assert added.isdisjoint(removed)
    assert builds(lake.files(WHOLE)) == [1]


def test_a_slice_of_several_files_keeps_every_row(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    # Two parts that happen to be equal, then one of three changed.
    parts = [staged(tmp_path / part, number) for part, number in (("a", 1), ("b", 1), ("c", 2))]
    lake.commit(WHOLE, parts, seal("x"), None)
    assert pl.read_parquet(lake.files(WHOLE)).height == 9
    parts = [staged(tmp_path / part, number) for part, number in (("a", 1), ("b", 1), ("c", 3))]
    lake.commit(WHOLE, parts, seal("x"), None)
    assert pl.read_parquet(lake.files(WHOLE))["build"].sort().to_list() == [1] * 6 + [3] * 3
    assert lake.fingerprint(WHOLE) == seal("x")
    added = {action["add"]["path"] for action in actions(folder, WHOLE)[1] if "add" in action}
    removed = {action["remove"]["path"] for action in actions(folder, WHOLE)[1] if "remove" in action}
    assert added.isdisjoint(removed)


def test_two_months_may_not_share_a_file(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    lake.commit(MONTHLY, [staged(tmp_path, 1, "2026-01")], seal("same"), "2026-01")
    same = staged(tmp_path, 1, "2026-01")
    with pytest.raises(ValueError, match="fingerprint"):
        lake.commit(MONTHLY, [same], seal("same"), "2026-02")
    assert lake.periods(MONTHLY) == ["2026-01"]


def test_a_month_without_rows_is_there(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    commit(lake, tmp_path, 1, "2026-01", rows=0)
    commit(lake, tmp_path, 1, "2026-02")
    commit(lake, tmp_path, 1, None, rows=0)
    assert lake.periods(MONTHLY) == ["2026-01", "2026-02"]
    assert pl.read_parquet(lake.files(MONTHLY, "2026-01")).shape == (0, 3)
    where, options = place.table(MONTHLY)
    assert pl.scan_delta(where, storage_options=options).collect().height == 3
    where, options = place.table(WHOLE)
    assert pl.scan_delta(where, storage_options=options).collect().shape == (0, 2)


def test_a_month_that_vanished_is_dropped(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    lake.drop(MONTHLY, "2026-01")
    commit(lake, tmp_path, 1, "2026-01")
    before = commit(lake, tmp_path, 1, "2026-02")
    lake.drop(MONTHLY, "2026-01")
    lake.drop(MONTHLY, "2026-01")
    assert lake.periods(MONTHLY) == ["2026-02"]
    assert lake.record(MONTHLY)["version"] == before + 1
    assert len(lake.files(MONTHLY, version=before)) == 2
    where, options = place.table(MONTHLY)
    assert pl.scan_delta(where, storage_options=options).collect()["billing_period"].unique().to_list() == ["2026-02"]


def test_no_version_ever_expires(folder: Place, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    lake = folder.lake()
    commit(lake, tmp_path, 1, None)
    # Delta's own defaults drop log entries after 30 days, and allow files to be removed after 7.
    settings = DeltaTable(folder.table(WHOLE)[0]).metadata().configuration
    assert settings["delta.enableExpiredLogCleanup"] == "false"
    assert settings["delta.logRetentionDuration"] == "interval 36500 days"
    assert settings["delta.deletedFileRetentionDuration"] == "interval 36500 days"
    for number in range(2, 110):
        commit(lake, tmp_path, number, None)
    # Past a checkpoint (every 100 versions) the first is still there.
    assert builds(folder.lake().files(WHOLE, version=0)) == [1]


def test_a_table_may_gain_columns(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    commit(lake, tmp_path, 1, "2026-01")
    commit(lake, tmp_path, 1, "2026-02")
    wider = pl.read_parquet(staged(tmp_path / "in", 2, "2026-02")).with_columns(at=datetime(2026, 2, 1))
    wider.write_parquet(tmp_path / "wider.parquet")
    lake.commit(MONTHLY, [tmp_path / "wider.parquet"], seal("wider"), "2026-02")
    read = pl.scan_delta(folder.table(MONTHLY)[0]).collect().sort("billing_period", "row")
    assert read["at"].to_list() == [None] * 3 + [datetime(2026, 2, 1)] * 3


def test_a_table_may_change_between_whole_and_by_month(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    before = lake.commit(MONTHLY, [staged(tmp_path, 1)], seal("whole"), None)
    after = commit(lake, tmp_path, 2, "2026-01")
    assert builds(lake.files(MONTHLY)) == [2]
    lake.commit(MONTHLY, [staged(tmp_path, 3)], seal("whole again"), None)
    assert builds(lake.files(MONTHLY)) == [3]
    assert pl.scan_delta(folder.table(MONTHLY)[0]).collect()["build"].to_list() == [3] * 3
    assert [builds(lake.files(MONTHLY, version=v)) for v in (before, after)] == [[1], [2]]


def test_a_table_may_change_to_parts_of_a_month_and_source(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    commit(lake, tmp_path, 1, "2026-01")
    slices = [
        Slice(part, (staged(tmp_path / part, number, part),), seal(part))
        for number, part in enumerate(("2026-01/a", "2026-01/b", "2026-02/b"), 2)
    ]
    lake.commit_slices(MONTHLY, slices)
    assert lake.periods(MONTHLY) == ["2026-01/a", "2026-01/b", "2026-02/b"]
    assert builds(lake.files(MONTHLY, "2026-01")) == [2, 3]
    assert builds(lake.files(MONTHLY, "2026-01/b")) == [3]
    assert lake.fingerprint(MONTHLY, "2026-01") is None and lake.fingerprint(MONTHLY, "2026-01/b") == seal("2026-01/b")
    # One commit replaces parts of a source, and nothing of another one or of its other months.
    lake.commit(MONTHLY, [staged(tmp_path, 5, "2026-01/b")], seal("new"), "2026-01/b")
    assert builds(lake.files(MONTHLY)) == [2, 4, 5]
    lake.drop(MONTHLY, "2026-01/a")
    assert builds(folder.lake("elsewhere").files(MONTHLY)) == [4, 5]
    read = pl.scan_delta(folder.table(MONTHLY)[0]).sort("build").collect()
    assert read.select("billing_period", "source_name").unique(maintain_order=True).rows() == [
        ("2026-02", "b"),
        ("2026-01", "b"),
    ]


RESET = (
    "Generic S3 error\n\x1b[31m↳\x1b[0m Error performing PUT http://bucket/_delta_log/1.json in 1ms - HTTP error\n"
    "\x1b[31m↳\x1b[0m error sending request\n\x1b[31m↳\x1b[0m Connection reset by peer (os error 104)"
)


@pytest.mark.parametrize("has_landed", [False, True])
def test_a_commit_without_an_answer_is_made_once(
    has_landed: bool, folder: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the one of deltalake 1.6.6 behind a proxy that resets the request of a commit."""
    from deltalake import DeltaTable

    really_commit, faults = DeltaTable.create_write_transaction, iter([True, False])

    def unanswered(*args: Any, **kwargs: Any) -> None:
        is_faulty = next(faults)
        if has_landed or not is_faulty:
            really_commit(*args, **kwargs)
        if is_faulty:
            raise OSError(RESET)

    monkeypatch.setattr(delta, "_PAUSES", (0.0, None))
    lake = folder.lake()
    assert lake.commit(WHOLE, [staged(tmp_path, 1)], "1" * 16, None) == 0
    monkeypatch.setattr(DeltaTable, "create_write_transaction", unanswered)
    lake.commit(WHOLE, [staged(tmp_path, 2)], "2" * 16, None)
    assert folder.lake().fingerprint(WHOLE) == "2" * 16
    assert next(faults, None) is (False if has_landed else None)
    assert len([*Path(folder.location, "tables", WHOLE, "_delta_log").glob("*.json")]) == 2


def test_a_store_that_stays_away_is_no_matter_of_rights(
    folder: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalake import DeltaTable

    def unanswered(*args: Any, **kwargs: Any) -> None:
        raise OSError(RESET)

    monkeypatch.setattr(delta, "_PAUSES", (0.0, None))
    lake = folder.lake()
    lake.commit(WHOLE, [staged(tmp_path, 1)], "1" * 16, None)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", unanswered)
    with pytest.raises(UnreachableError) as refused:
        lake.commit(WHOLE, [staged(tmp_path, 2)], "2" * 16, None)
    assert str(refused.value).endswith(
        f"{WHOLE} did not answer (Connection reset by peer (os error 104)); run it again, it continues."
    )
