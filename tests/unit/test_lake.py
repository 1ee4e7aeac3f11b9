"""Tables and publications: what a commit changes, what stays readable, and what a kill or a rival can do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.lake_builds import MONTHLY, MONTHS, PUBLISHED, WHOLE, build, open_lake, publish, seal, staged

from pipelines.errors import CheckError, SourceError
from pipelines.lake import Lake

TESTS = Path(__file__).resolve().parents[1]
RECORD = {"code_revision": "1", "inputs": {}, "tables": {}, "checks": []}


class Place:
    """A warehouse location, in a folder or on S3, and how other programs reach it."""

    def __init__(self, location: str, cache: Path, endpoint: str | None = None):
        self.location, self.cache, self.endpoint = location, cache, endpoint

    def lake(self, cache: str = "") -> Lake:
        return open_lake(self.location, self.cache / cache, self.endpoint)

    def table(self, table: str) -> tuple[str, dict[str, str] | None]:
        """Where an open-format reader finds a table; the options are the ones any client would give."""
        options = {"aws_endpoint_url": self.endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}
        return f"{self.location}/tables/{table}", options if self.endpoint else None

    def run(self, *arguments: object, moment: str = "") -> subprocess.Popen:
        words = [self.location, self.cache / "other", *arguments, moment, self.endpoint or ""]
        return subprocess.Popen(
            [sys.executable, "-m", "support.lake_builds", *map(str, words)],
            cwd=TESTS,
            env=os.environ | {"PYTHONPATH": str(TESTS.parent)},
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    (tmp_path / "warehouse").mkdir()
    return Place(str(tmp_path / "warehouse"), tmp_path)


@pytest.fixture
def s3(tmp_path: Path, s3_endpoint: str) -> Place:
    import boto3

    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="example-warehouse")
    return Place("s3://example-warehouse/some/prefix", tmp_path, s3_endpoint)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(request.param)


def commit(lake: Lake, tmp_path: Path, number: int, month: str | None, rows: int = 3) -> int:
    table = MONTHLY if month else WHOLE
    return lake.commit(table, [staged(tmp_path / "in", number, month, rows)], seal(table, month, number), month)


def builds(paths: list[Path]) -> list[int]:
    """The builds whose rows the files hold, in order, each once."""
    return pl.read_parquet(paths)["build"].unique().sort().to_list()


def actions(place: Place, table: str) -> list[list[dict]]:
    """What each version of a table's log does, by version."""
    logs = sorted((Path(place.location) / "tables" / table / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]


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
    assert lake.versions() == {MONTHLY: after}
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
    assert lake.versions() == {MONTHLY: before + 1}
    assert len(lake.files(MONTHLY, version=before)) == 2
    where, options = place.table(MONTHLY)
    assert pl.scan_delta(where, storage_options=options).collect()["billing_period"].unique().to_list() == ["2026-02"]


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


def test_what_is_not_there_is_nothing_or_named(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    assert lake.files("marts/none") == []
    assert lake.fingerprint("marts/none") is None
    assert lake.periods("marts/none") == []
    assert lake.versions().get("marts/none") is None
    commit(lake, tmp_path, 1, None)
    with pytest.raises(SourceError, match=r"mart_small.* version 7"):
        lake.files(WHOLE, version=7)


def test_a_file_that_went_missing_is_named(place: Place, tmp_path: Path) -> None:
    lake = place.lake()
    commit(lake, tmp_path, 1, None)
    (name,) = [path.name for path in lake.files(WHOLE)]
    from pipelines.storage import open_store

    open_store(place.location, endpoint_url=place.endpoint).delete(f"tables/{WHOLE}/{name}")
    with pytest.raises(SourceError, match=name):
        place.lake("fresh").files(WHOLE)


def test_publications_are_numbered_and_stay(place: Place) -> None:
    lake = place.lake()
    assert lake.current() is None
    assert lake.publications() == []
    first = lake.publish(RECORD | {"tables": {WHOLE: {"version": 3, "files": ["a.parquet"]}}})
    second = lake.publish(RECORD | {"code_revision": "2"})
    assert (first.number, second.number) == (1, 2)
    assert first.published_at < second.published_at
    assert place.lake().current() == second
    assert place.lake().publications() == [first, second]
    assert place.lake().publications()[0].tables[WHOLE] == {"version": 3, "files": ["a.parquet"]}


def test_the_publication_known_at_a_time(folder: Place) -> None:
    lake = folder.lake()
    assert lake.as_of(datetime.now(UTC)) is None
    known = [lake.publish(RECORD) for _ in range(5)]
    instant = timedelta(microseconds=1)
    assert lake.as_of(known[0].published_at - instant) is None
    for publication in known:
        assert lake.as_of(publication.published_at) == publication
    assert lake.as_of(known[3].published_at - instant) == known[2]
    assert lake.as_of(datetime.now(UTC)) == known[4]


def test_a_publication_of_another_build_is_not_overwritten(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, other = folder.lake(), folder.lake()
    first = lake.publish(RECORD)
    from pipelines.storage import LocalStore

    plain = LocalStore.list
    monkeypatch.setattr(LocalStore, "list", lambda self, prefix="": [])
    with pytest.raises(CheckError, match="again"):
        other.publish(RECORD | {"code_revision": "rival"})
    monkeypatch.setattr(LocalStore, "list", plain)
    assert folder.lake().publications() == [first]


def test_a_damaged_record_is_named(folder: Place) -> None:
    folder.lake().publish(RECORD)
    record = Path(folder.location) / "publications" / "000001.json"
    record.write_text(record.read_text()[:20])
    with pytest.raises(SourceError, match=r"publications/000001\.json"):
        folder.lake().current()


@pytest.mark.parametrize("moment", ["commit", "publish"])
def test_a_kill_leaves_the_last_publication_and_a_rerun_comes_to_the_same(
    place: Place, moment: str, tmp_path: Path
) -> None:
    build(place.lake(), tmp_path / "in", 1)
    victim = place.run(2, 2, moment=moment)
    victim.communicate()
    assert victim.returncode == -9
    reader = place.lake("reader")
    standing = reader.current()
    assert standing is not None and standing.number == 1
    for table in PUBLISHED:
        assert builds(reader.files(table, version=standing.tables[table]["version"])) == [1]

    if place.endpoint:
        expire_lease(place)
    build(place.lake(), tmp_path / "in", 2)
    (tmp_path / "undisturbed").mkdir()
    undisturbed = open_lake(str(tmp_path / "undisturbed"), tmp_path / "undisturbed")
    for number in (1, 2):
        build(undisturbed, tmp_path / "in", number)
    after, wanted = place.lake("reader").current(), undisturbed.current()
    assert after is not None and wanted is not None
    assert (after.number, after.tables) == (2, wanted.tables)
    read = place.lake("reader")
    for table in PUBLISHED:
        assert [p.read_bytes() for p in read.files(table)] == [p.read_bytes() for p in undisturbed.files(table)]


def expire_lease(place: Place) -> None:
    """Let the time pass after which a lease that nobody renews counts for nothing."""
    from pipelines.lock import LEASE_KEY
    from pipelines.storage import open_store

    store = open_store(place.location, endpoint_url=place.endpoint)
    held = json.loads(store.read(LEASE_KEY))
    store.write(LEASE_KEY, json.dumps(held | {"until": "2026-01-01T00:00:00+00:00"}).encode())


def test_a_reader_never_errs_and_never_sees_two_builds(folder: Place, tmp_path: Path) -> None:
    build(folder.lake(), tmp_path / "in", 1)
    writer = folder.run(2, 25)
    reads, seen, lasting = 0, [], folder.lake()
    while writer.poll() is None:
        for lake in (lasting, folder.lake()):
            publication = lake.current()
            assert publication is not None
            for table in PUBLISHED:
                files = lake.files(table, version=publication.tables[table]["version"])
                assert builds(files) == [int(publication.code_revision)]
                assert sorted(path.name for path in files) == sorted(publication.tables[table]["files"])
            seen.append(publication.number)
            reads += 1
    assert writer.returncode == 0
    assert seen == sorted(seen)
    # The reader was there while publications went by.
    assert reads > 20 and len(set(seen)) > 5
    assert [p.code_revision for p in lasting.publications()] == [str(number) for number in range(1, 26)]


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
        assert lake.versions() == dict.fromkeys(tables, 0)
    assert len(opened) == 25


def test_a_file_is_downloaded_once(s3: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.storage_s3 import S3Store

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


def test_a_build_sees_what_another_committed_before_it(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    build(lake, tmp_path / "in", 1)
    build(folder.lake(), tmp_path / "in", 2)
    with lake.lock():
        assert lake.fingerprint(WHOLE) == seal(WHOLE, None, 2)
        publish(lake, 3)
    assert [lake.fingerprint(MONTHLY, month) for month in MONTHS] == [seal(MONTHLY, month, 2) for month in MONTHS]
