from __future__ import annotations

import fcntl
import gc
import os
import threading
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from support.small_company import Company

TESTS = Path(__file__).resolve().parent
SHARED_DATA = TESTS.parents[1] / "shared" / "data"
# A worker takes whole files, so the longest start first; those that wait for a server before those that compute.
LONGEST = (
    *("defs/test_services.py", "golden/test_stories.py", "unit/test_run_mlflow.py", "dashboard/test_pages.py"),
    *("defs/test_runs.py", "dashboard/test_access.py"),
    *("unit/demo/test_demo_queries.py", "dashboard/test_browser.py", "unit/test_source_jobs.py"),
    *("evidence/test_forged_packs.py", "real/test_real_bills.py", "unit/test_report.py", "unit/test_explain.py"),
    *("real/test_real_nise.py", "unit/test_mart_copy.py", "real/test_real_currencies.py"),
    *("unit/test_measured_baseline.py", "regressions/test_currencies.py", "regressions/test_provisional_runs.py"),
    *("bad_input/test_bad_reservations.py", "bad_input/test_bombs.py", "lake/test_lake_rivals.py"),
    *("real/test_real_focus_export.py", "architecture/test_code_digest.py", "properties/test_check_laws.py"),
)


# An example may take any time on a busy machine.
settings.register_profile("no deadline", parent=settings.default, deadline=None)
settings.load_profile("no deadline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    # What is loaded by now stays to the end; to look through it for garbage takes longer than some tests.
    gc.freeze()
    # What a test leaves behind is little, so it is looked for seldom.
    gc.set_threshold(50_000)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed and the counts of each campaign."""
    reports = [one for reports in terminalreporter.stats.values() for one in reports]
    ended = [one for one in reports if getattr(one, "when", "") == "teardown"]
    for line in sorted(text for one in ended for name, text in one.user_properties if name == "campaign"):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real bills and logs that are not part of this repository; tests skip where they are absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"real data folder {SHARED_DATA} is absent")
    return SHARED_DATA


@pytest.fixture(scope="session", autouse=True)
def unsynced_files() -> Iterator[None]:
    """No test cuts the power, so none waits until its files are on the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_checks() -> Iterator[None]:
    """Every table passes its compiled checks; Great Expectations, which agrees with them, has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINLEDGER_WAREHOUSE__GATE", "none")
        # Bills of a few lines gain nothing from a second thread, and every processor has a worker of its own.
        patch.setenv("TRAINLEDGER_WAREHOUSE__THREADS", "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A table that was made from the same inputs before is copied; what it is made from is its fingerprint."""
    from support.shared_tables import making_each_once

    from pipelines.models.build import Builder

    folder = _of_the_run(tmp_path_factory) / "tables"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Builder, "_make", making_each_once(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Typer reads the signatures of all commands each time one is run; in one process they stay the same."""
    import typer.main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


def _of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Fills a folder by a function once for the whole run, in whichever worker asks first; tests take copies of it."""
    base = _of_the_run(tmp_path_factory)

    def fill(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = base / f"once-{name}", base / f"once-{name}.done"
        with (base / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return fill


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """URL of one S3-compatible server on loopback for the whole run; what is in it is shared."""
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    # S3 compares a condition and puts in one step; this server would let two writers meet one condition.
    one_at_a_time, put = threading.Lock(), S3Response.put_object

    def put_object(response: S3Response) -> Any:
        with one_at_a_time:
            return put(response)

    S3Response.put_object = put_object
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_endpoint(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of the S3-compatible server, emptied, with credentials for it in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # The developer's own profiles must not leak into a test.
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    reset = urllib.request.Request(f"{s3_server}/moto-api/reset", method="POST")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(reset).close()
    return s3_server


@pytest.fixture
def s3(s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The S3 client of a machine whose home, and so whose cache, is empty; the bucket is `s3_company.BUCKET`."""
    import boto3

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket="example-billing")
    return client


@pytest.fixture(scope="session")
def built_company(once: Once) -> Company:
    """A small company, built once for the whole run; a test takes a copy of it."""
    from support.ledgers import build_warehouse
    from support.small_company import Company, found

    root = once("company", lambda root: build_warehouse(found(root).config))
    return Company(root, root / "events")


@pytest.fixture(scope="session")
def published_story(once: Once) -> Callable[[str], Path]:
    """The folder of a story of `stories.PUBLISHED` by its name, built once for the whole run; no test changes it."""
    from support.stories import publish_story

    return lambda name: once(name, lambda root: publish_story(TESTS / "golden" / name, root))
