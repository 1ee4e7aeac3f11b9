"""One build at a time: who has to wait, and what becomes of the lock of a build that was killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.base.errors import UnreachableError
from pipelines.warehouse import lock
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.lock import LEASE_KEY, BuildBusy
from pipelines.warehouse.storage_s3 import S3Store
from pipelines.warehouse.stores import open_store

ROOT = Path(__file__).resolve().parents[2]
RECORD = {"code_revision": "1", "inputs": {"deliveries": [], "tags": {}}, "tables": {}, "checks": []}
HOLD = """
import sys, time
from datetime import timedelta
from pathlib import Path
from pipelines.warehouse import lock
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.stores import open_store

location, endpoint, cache, seconds = sys.argv[1:]
lock.LEASE = timedelta(seconds=float(seconds))
with Lake(open_store(location, endpoint_url=endpoint or None), Path(cache)).lock():
    print("held", flush=True)
    time.sleep(60)
"""


class Warehouse:
    def __init__(self, location: str, cache: Path, endpoint: str = ""):
        self.location, self.cache, self.endpoint = location, cache, endpoint

    def lake(self) -> Lake:
        return Lake(open_store(self.location, endpoint_url=self.endpoint or None), self.cache)

    def held_elsewhere(self, seconds: float = 300) -> subprocess.Popen:
        """Another process that holds the lock until it is killed; on S3 by a lease of so many seconds."""
        words = [self.location, self.endpoint, str(self.cache), str(seconds)]
        holder = subprocess.Popen([sys.executable, "-c", HOLD, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        return holder


@pytest.fixture
def s3(tmp_path: Path, s3_endpoint: str) -> Warehouse:
    import boto3

    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="example-warehouse")
    return Warehouse("s3://example-warehouse/w", tmp_path / "cache", s3_endpoint)


@pytest.fixture
def folder(tmp_path: Path) -> Warehouse:
    (tmp_path / "warehouse").mkdir()
    return Warehouse(str(tmp_path / "warehouse"), tmp_path / "warehouse" / "cache")


@pytest.fixture(params=["folder", "s3"])
def warehouse(request: pytest.FixtureRequest) -> Warehouse:
    return request.getfixturevalue(request.param)


def test_the_second_builder_is_refused_with_who_holds_the_warehouse(warehouse: Warehouse) -> None:
    holder = warehouse.held_elsewhere()
    try:
        with (
            pytest.raises(BuildBusy, match=f"{warehouse.location}.*process {holder.pid} on "),
            warehouse.lake().lock(),
        ):
            pass
    finally:
        holder.kill()
        holder.communicate()


def test_a_lock_that_was_let_go_is_free(warehouse: Warehouse) -> None:
    for _ in range(3):
        with warehouse.lake().lock():
            with pytest.raises(BuildBusy, match=f"process {os.getpid()}"), warehouse.lake().lock():
                pass
            warehouse.lake().publish(RECORD)
    with pytest.raises(KeyError), warehouse.lake().lock():
        raise KeyError
    with warehouse.lake().lock():
        pass


def test_months_are_held_side_by_side_and_keep_a_whole_build_out(warehouse: Warehouse) -> None:
    july, august = warehouse.lake(), warehouse.lake()
    with july.lock("2026-07"):
        with august.lock("2026-08"), pytest.raises(BuildBusy, match=r"\A2026-07 of "), august.lock("2026-07"):
            pass
        with pytest.raises(BuildBusy, match=r"\A2026-07 of "), warehouse.lake().lock():
            pass
    busy = pytest.raises(BuildBusy, match=rf"\A{warehouse.location} is being built by ")
    with warehouse.lake().lock(), busy, august.lock("2026-08"):
        pass
    with july.lock("2026-08", "2026-07"), pytest.raises(BuildBusy), august.lock("2026-08"):
        pass
    with august.lock("2026-08"):
        pass


def test_a_killed_holder_lets_go_of_a_folder_at_once(folder: Warehouse) -> None:
    holder = folder.held_elsewhere()
    holder.kill()
    holder.communicate()
    with folder.lake().lock():
        pass


def test_a_killed_holder_lets_go_of_s3_when_its_lease_runs_out(s3: Warehouse) -> None:
    holder = s3.held_elsewhere(seconds=3)
    # Alive, it renews: the lease outlasts its three seconds.
    time.sleep(4)
    with pytest.raises(BuildBusy), s3.lake().lock():
        pass
    holder.kill()
    holder.communicate()
    with pytest.raises(BuildBusy), s3.lake().lock():
        pass
    time.sleep(3.5)
    with s3.lake().lock():
        pass


def expire(warehouse: Warehouse) -> None:
    store = open_store(warehouse.location, endpoint_url=warehouse.endpoint)
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    store.write(LEASE_KEY, json.dumps({"holder": "process 1 on elsewhere", "until": past}).encode())


def test_of_two_that_see_an_expired_lease_one_gets_it(s3: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    expire(s3)
    seen, taken, done = threading.Event(), threading.Event(), threading.Event()
    plain = {"read": S3Store.read, "read_tagged": S3Store.read_tagged}

    def slow(name: str) -> Any:
        def read(self: S3Store, key: str) -> Any:
            found = plain[name](self, key)
            if threading.current_thread().name == "slow" and not seen.is_set():
                # It has read the dead lease; now the other takes over before it can act on that.
                seen.set()
                taken.wait(10)
            return found

        return read

    for name in plain:
        monkeypatch.setattr(S3Store, name, slow(name))
    outcome: list[str] = []

    def take_slowly() -> None:
        try:
            with s3.lake().lock():
                outcome.append("held")
        except BuildBusy:
            outcome.append("busy")
        done.set()

    thread = threading.Thread(target=take_slowly, name="slow")
    thread.start()
    assert seen.wait(10)
    with s3.lake().lock():
        taken.set()
        assert done.wait(20)
    thread.join()
    assert outcome == ["busy"]


def test_a_build_that_lost_its_lease_writes_no_more(s3: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "LEASE", timedelta(seconds=2))
    stalled, plain = s3.lake(), S3Store.write_if

    def cut_off(self: S3Store, key: str, data: bytes, etag: str | None) -> str | None:
        if self is stalled._store:
            raise UnreachableError("the network is down")
        return plain(self, key, data, etag)

    with stalled.lock():
        monkeypatch.setattr(S3Store, "write_if", cut_off)
        time.sleep(2.5)
        with pytest.raises(BuildBusy, match="lost"):
            stalled.publish(RECORD)
        other = s3.lake()
        with other.lock():
            time.sleep(0.5)
            with pytest.raises(BuildBusy, match="lost"):
                stalled.publish(RECORD)
            assert other.publish(RECORD).number == 1
        monkeypatch.setattr(S3Store, "write_if", plain)
        last = s3.lake().lock()
        last.__enter__()
    # What the stalled build let go of just now was no longer its own.
    with pytest.raises(BuildBusy), s3.lake().lock():
        pass
    last.__exit__(None, None, None)
    assert [publication.number for publication in s3.lake().publications.all()] == [1]


def test_an_expired_lease_of_a_month_is_not_renewed(s3: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a whole build writes would refuse the renewal."""
    monkeypatch.setattr(lock, "LEASE", timedelta(seconds=2))
    stalled, plain = s3.lake(), S3Store.write_if

    def cut_off(self: S3Store, key: str, data: bytes, etag: str | None) -> str | None:
        if self is stalled._store:
            raise UnreachableError("the network is down")
        return plain(self, key, data, etag)

    with stalled.lock("2026-07"):
        monkeypatch.setattr(S3Store, "write_if", cut_off)
        time.sleep(2.5)
        with s3.lake().lock():
            monkeypatch.setattr(S3Store, "write_if", plain)
            time.sleep(1)
            with pytest.raises(BuildBusy, match="lost"):
                stalled.publish(RECORD)


def test_an_unreadable_lease_holds_nothing(s3: Warehouse) -> None:
    open_store(s3.location, endpoint_url=s3.endpoint).write(LEASE_KEY, b"{")
    with s3.lake().lock():
        pass
