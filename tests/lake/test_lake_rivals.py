"""Builds that are killed, or run next to others and next to readers."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from support.lake_builds import MONTHLY, MONTHS, PUBLISHED, WHOLE, build, open_lake, publish, seal, staged
from support.lake_places import Place, builds

from pipelines.base.errors import CheckError
from pipelines.warehouse.part import file_name


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["commit", "publish"])
def test_a_kill_leaves_the_last_publication_and_a_rerun_comes_to_the_same(
    place: Place, moment: str, tmp_path: Path
) -> None:
    build(place.lake(), tmp_path / "in", 1)
    victim = place.run(2, 2, moment=moment)
    victim.communicate()
    assert victim.returncode == -9
    reader = place.lake("reader")
    standing = reader.publications.newest()
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
    after, wanted = place.lake("reader").publications.newest(), undisturbed.publications.newest()
    assert after is not None and wanted is not None
    assert (after.number, after.tables) == (2, wanted.tables)
    read = place.lake("reader")
    for table in PUBLISHED:
        assert [p.read_bytes() for p in read.files(table)] == [p.read_bytes() for p in undisturbed.files(table)]


def expire_lease(place: Place) -> None:
    """Let the time pass after which a lease that is not renewed counts for nothing."""
    from pipelines.warehouse.lock import LEASE_KEY
    from pipelines.warehouse.stores import open_store

    store = open_store(place.location, endpoint_url=place.endpoint)
    held = json.loads(store.read(LEASE_KEY))
    store.write(LEASE_KEY, json.dumps(held | {"until": "2026-01-01T00:00:00+00:00"}).encode())


def test_a_reader_never_errs_and_never_sees_two_builds(folder: Place, tmp_path: Path) -> None:
    build(folder.lake(), tmp_path / "in", 1)
    writer = folder.run(2, 12)
    # On a busy machine too, the reader reads between two publications.
    os.setpriority(os.PRIO_PROCESS, writer.pid, 5)
    reads, seen, lasting = 0, [], folder.lake()
    while writer.poll() is None:
        for lake in (lasting, folder.lake()):
            publication = lake.publications.newest()
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
    assert [p.code_revision for p in lasting.publications.all()] == [str(number) for number in range(1, 13)]


def test_a_build_sees_what_another_committed_before_it(folder: Place, tmp_path: Path) -> None:
    lake = folder.lake()
    build(lake, tmp_path / "in", 1)
    build(folder.lake(), tmp_path / "in", 2)
    with lake.lock():
        assert lake.fingerprint(WHOLE) == seal(WHOLE, None, 2)
        publish(lake, 3)
    assert [lake.fingerprint(MONTHLY, month) for month in MONTHS] == [seal(MONTHLY, month, 2) for month in MONTHS]


@pytest.mark.parametrize("months", [("2026-01", "2026-02", "2026-03"), ("2026-01/a", "2026-01/b", "2026-02/a")])
def test_builds_of_different_parts_commit_to_one_table(place: Place, tmp_path: Path, months: tuple[str, ...]) -> None:
    """Also to one that does not exist yet, and when they replace what they committed before."""
    start, failures = threading.Barrier(3), []

    def commits(month: str) -> None:
        lake = place.lake(file_name(month))
        try:
            for number in range(3):
                start.wait()
                file = staged(tmp_path / file_name(month), number, month)
                lake.commit(MONTHLY, [file], seal(month, number), month)
        except Exception as error:
            failures.append(error)
            start.abort()

    writers = [threading.Thread(target=commits, args=(month,)) for month in months]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    after = place.lake("reader")
    assert [after.fingerprint(MONTHLY, month) for month in months] == [seal(month, 2) for month in months]
    assert after.record(MONTHLY)["version"] == 8
    assert after.periods(MONTHLY) == list(months)


def test_of_two_builds_of_one_month_the_second_is_refused(place: Place, tmp_path: Path) -> None:
    first, second = place.lake("first"), place.lake("second")
    first.commit(MONTHLY, [staged(tmp_path, 1, "2026-01")], seal(1), "2026-01")
    assert second.fingerprint(MONTHLY, "2026-01") == seal(1)
    first.commit(MONTHLY, [staged(tmp_path, 2, "2026-01")], seal(2), "2026-01")
    with pytest.raises(CheckError, match="was changed by another build"):
        second.commit(MONTHLY, [staged(tmp_path, 3, "2026-01")], seal(3), "2026-01")
    assert place.lake("reader").fingerprint(MONTHLY, "2026-01") == seal(2)
