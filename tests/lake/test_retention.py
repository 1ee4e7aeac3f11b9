"""What pruning keeps and removes, and that a year of daily builds stays small."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.clock import Clock, stop_clock
from support.lake_builds import MONTHLY, WHOLE, build
from support.lake_places import Place, builds

from pipelines.base.errors import UsageError
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.lock import BuildBusy
from pipelines.warehouse.storage_s3 import S3Store

KNOWN = {MONTHLY, WHOLE}
FIRST = datetime(2026, 1, 1, 6, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    return stop_clock(monkeypatch, FIRST, "pipelines.warehouse.publication")


def daily(place: Place, tmp_path: Path, clock: type[Clock], days: range, *, prunes: bool = True) -> None:
    """One build a day, the number of the day as its content; the lake is opened anew for each, as processes do."""
    for day in days:
        clock.moment = FIRST + timedelta(days=day)
        lake = place.lake()
        build(lake, tmp_path / "staged", day)
        if prunes:
            with lake.lock():
                lake.prune(clock.moment, 35, (), KNOWN)


def rows_of(place: Place, at: datetime) -> list[int]:
    """The builds of the rows that the publication of a moment shows."""
    lake = place.lake()
    found = lake.publications.as_of(at)
    assert found is not None
    return builds(lake.as_published(found).files(MONTHLY)) + builds(
        lake.named_files(WHOLE, found.tables[WHOLE]["files"])
    )


def stored(place: Place) -> list[Path]:
    return [path for path in Path(place.location).rglob("*") if path.is_file()]


def test_the_rule(place: Place, tmp_path: Path, clock: type[Clock]) -> None:
    """Seven builds of January to March; on 31 March, those since 24 February stay, month ends, and number 2."""
    days = (0, 5, 20, 40, 53, 54, 89)
    for day in days:
        daily(place, tmp_path, clock, range(day, day + 1), prunes=False)
    lake = place.lake()
    with lake.lock():
        planned = lake.prune(clock.moment, 35, (2,), KNOWN, dry_run=True)
        assert len(lake.publications.all()) == 7
        pruned = lake.prune(clock.moment, 35, (2,), KNOWN)
    # Of 1, 6, 21 January, 10, 23, 24 February and 31 March: 24 February 06:00 is 35 days before 31 March.
    assert [one.number for one in place.lake().publications.all()] == [2, 3, 6, 7]
    assert planned == pruned and pruned.publications == (1, 4, 5) and pruned.kept_count == 4
    # Of each publication, two months of one table and another one.
    assert pruned.file_count == 9
    assert rows_of(place, FIRST + timedelta(days=60)) == [54] * 2
    for day, gone in ((1, 1), (45, 4), (53, 5)):
        with pytest.raises(
            UsageError, match=rf"^Publication {gone}, the newest at .*, was pruned; the nearest kept are "
        ):
            place.lake().publications.as_of(FIRST + timedelta(days=day))
    assert place.lake().publications.as_of(FIRST - timedelta(days=1)) is None


def test_a_number_that_a_rollback_gives_again_is_found_by_its_time(
    folder: Place, tmp_path: Path, clock: type[Clock]
) -> None:
    """Of builds of 1, 2, 3 and 4 January and 20 February, number 3 was pruned; a rollback leaves number 1."""
    for day in (0, 1, 2, 3, 50):
        daily(folder, tmp_path, clock, range(day, day + 1), prunes=False)
    lake = folder.lake()
    with lake.lock():
        assert lake.prune(clock.moment, 35, (1, 2), KNOWN).publications == (3,)
    for number in (2, 4, 5):
        (Path(folder.location) / f"publications/{number:06d}.json").unlink()
    daily(folder, tmp_path, clock, range(51, 52), prunes=False)
    assert rows_of(folder, FIRST + timedelta(days=52)) == [51] * 2
    with pytest.raises(UsageError, match=r"^Publication 3, "):
        folder.lake().publications.as_of(FIRST + timedelta(days=3))


def test_only_what_is_ours_and_unnamed_goes(folder: Place, tmp_path: Path, clock: type[Clock]) -> None:
    daily(folder, tmp_path, clock, range(2), prunes=False)
    root = Path(folder.location)
    orphan = root / "tables" / WHOLE / f"{'a' * 16}-{'b' * 16}.parquet"
    # As one is named whose bytes do not show its rows.
    of_spark = orphan.with_name(f"{'a' * 16}-{'b' * 16}.{'e' * 16}.parquet")
    stranger = root / "tables" / WHOLE / "notes.parquet"
    killed, fresh = root / "tables" / WHOLE / ".0a1b.tmp", root / "publications" / ".2c3d.tmp"
    old = root / "tables" / "core" / "fct_gone" / f"{'c' * 16}-{'d' * 16}.parquet"
    for path in (orphan, of_spark, stranger, killed, fresh, old):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    yesterday = (clock.moment - timedelta(days=2)).timestamp()
    os.utime(killed, (yesterday, yesterday))
    before = {*stored(folder)}
    lake = folder.lake()
    with lake.lock():
        lake.prune(clock.moment, 35, (), KNOWN)
    assert before - {*stored(folder)} == {orphan, of_spark, killed, old}


def test_a_prune_that_lost_its_lease_removes_no_more(
    s3: Place, tmp_path: Path, clock: type[Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two builds of January, the first is pruned: a record, then three files, of which one goes before the loss."""
    daily(s3, tmp_path, clock, range(2), prunes=False)
    lake, plain = s3.lake(), S3Store.delete
    watch = stop_clock(monkeypatch, datetime.now(UTC), "pipelines.warehouse.lock")

    def delete_and_sleep(self: S3Store, key: str) -> None:
        plain(self, key)
        watch.moment += timedelta(hours=key.startswith("tables/"))

    monkeypatch.setattr(S3Store, "delete", delete_and_sleep)
    count = len(lake._store.list("tables/"))
    with pytest.raises(BuildBusy, match="lost its hold"), lake.lock():
        lake.prune(FIRST + timedelta(days=40), 35, (), KNOWN)
    assert len(lake._store.list("tables/")) == count - 1


@pytest.mark.slow
def test_400_daily_builds_stay_bounded(folder: Place, tmp_path: Path, clock: type[Clock]) -> None:
    """Between day 200 and day 400 six more month ends are kept, and nothing else grows."""
    sizes, seconds = {}, {}
    for last in (100, 200, 300, 400):
        started = time.process_time()
        daily(folder, tmp_path, clock, range(last - 100, last))
        seconds[last] = time.process_time() - started
        found = stored(folder)
        sizes[last] = (len(found), sum(path.stat().st_size for path in found))
    (files, held), (most_files, most_held) = sizes[200], sizes[400]
    # A publication has a record and three data files.
    assert most_files - files <= 6 * 4 + 2 * 20
    assert most_held < 2 * held
    assert seconds[400] < 3 * seconds[200]
    # The last build of March, of which nothing else is left.
    assert rows_of(folder, datetime(2026, 3, 31, 23, tzinfo=UTC)) == [89] * 2
    # Day 400 less 35.
    assert rows_of(folder, FIRST + timedelta(days=366)) == [366] * 2
    from deltalake import DeltaTable

    assert DeltaTable(f"{folder.location}/tables/{MONTHLY}").to_pyarrow_table().num_rows == 6
    lake: Lake = folder.lake()
    assert all(not lake.damaged(one) for one in lake.publications.all())
