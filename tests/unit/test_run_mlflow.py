"""MLflow runs read from a live server: finished, resumed, deleted, nested, and killed without a word."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import polars as pl
import pytest
from support.ports import free_port

from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import UNREAD, RunRecords
from pipelines.ingest.runs.tracker import read_runs, runs_fingerprint

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".mlflow" / "bin"
# The server would start seven processes for jobs that no test asks of it. Byte code is kept, so that only the first
# run of an environment pays for compiling MLflow.
ENVIRONMENT = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONDONTWRITEBYTECODE": ""}
# MLflow's tracking server in one process: its command starts a second one, and loads as much again for assistants and
# gateways. A folder and a file are served by the command.
SERVER = """
import os, sys
from mlflow.server import ARTIFACT_ROOT_ENV_VAR, BACKEND_STORE_URI_ENV_VAR, app
from werkzeug.serving import make_server
home, port = sys.argv[1:]
os.environ[BACKEND_STORE_URI_ENV_VAR] = f"sqlite:///{home}/m.db"
os.environ[ARTIFACT_ROOT_ENV_VAR] = f"{home}/artifacts"
make_server("127.0.0.1", int(port), app, threaded=True).serve_forever()
"""
needs_server = pytest.mark.skipif(
    not (BIN / "mlflow").exists(), reason="no MLflow server installed: make test installs one"
)


def source(location: str) -> RunSource:
    return RunSource(name="lab", kind="mlflow", location=location)


@pytest.fixture(scope="module")
def server_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mlflow")


@pytest.fixture(scope="module")
def server(server_home: Path) -> Iterator[str]:
    home, port = server_home, free_port()
    command = [BIN / "python", "-c", SERVER, home, str(port)]
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=home, env=ENVIRONMENT) as process,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait(url: str, process: subprocess.Popen) -> None:
    for _ in range(720):
        assert process.poll() is None, "the server did not start"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    raise TimeoutError(url)


@pytest.fixture(scope="module")
def story(server: str) -> tuple[dict[str, str], RunRecords]:
    script = ROOT / "tests" / "support" / "mlflow_story.py"
    done = subprocess.run(
        [BIN / "python", script, server], capture_output=True, text=True, timeout=120, env=ENVIRONMENT
    )
    assert done.returncode == -9, done.stderr
    ids = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.ingest.runs.mlflow._HISTORY_PAGE", 100)
        return ids, read_runs(source(server))


def rows(story: tuple[dict[str, str], RunRecords], table: str, run: str, *columns: str) -> list[tuple]:
    ids, records = story
    return records.tables[f"tracker_{table}"].filter(pl.col("run_id") == ids[run]).select(columns).rows()


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-07-01T{clock}")


@needs_server
def test_a_finished_run_records_what_it_was_where_it_ran_and_how_far_it_came(story) -> None:
    run = rows(story, "run", "done", "model", "dataset", "seq_len", "global_batch_samples", "status", "experiment")
    assert run == [("llama", "corp", 4096, 256, "completed", "finetunes")]
    stay = rows(story, "resource", "done", "resource_id", "account_id", "region_id", "joined_at", "left_at", "evidence")
    assert stay == [("i-01", "000033334444", "us-west-2", at("10:00:00"), at("12:05:00"), "imds")]
    assert rows(story, "epoch", "done", "epoch_index", "completed_at", "step") == [
        (1, at("11:00:00"), 200),
        (2, at("12:00:00"), 400),
    ]
    assert sorted(rows(story, "evaluation", "done", "step", "metric", "value")) == [
        (100, "eval_loss", 3.0),
        (200, "eval_loss", 2.5),
        (400, "eval_loss", 2.0),
    ]


@needs_server
def test_a_resumed_run_is_two_attempts_and_the_gap_is_unattributed(story) -> None:
    """MLflow shows 10:00 to 13:25; the steps go back at 13:00 and nothing is heard from 10:20 on."""
    assert rows(story, "attempt", "resumed", "attempt_no", "started_at", "ended_at", "end_reason") == [
        (1, at("10:00:00"), at("10:20:00"), "unknown"),
        (2, at("13:00:00"), at("13:25:00"), "completed"),
    ]
    assert len(rows(story, "resource", "resumed", "joined_at")) == 2


@needs_server
def test_a_deleted_run_still_cost_money(story) -> None:
    assert rows(story, "run", "deleted", "status", "started_at", "ended_at") == [
        ("failed", at("09:00:00"), at("09:30:00"))
    ]


@needs_server
def test_a_killed_run_has_no_end_and_is_last_seen_at_its_last_metric(story) -> None:
    assert rows(story, "run", "killed", "status", "ended_at", "last_seen_at") == [(None, None, at("10:40:00"))]
    assert any(story[0]["killed"] in warning and "never ended" in warning for warning in story[1].warnings)


@needs_server
def test_a_nested_run_names_its_parent(story) -> None:
    assert rows(story, "run", "child", "parent_run_id") == [(story[0]["parent"],)]
    assert rows(story, "run", "parent", "parent_run_id") == [(None,)]


@needs_server
def test_a_long_history_is_read_to_its_last_page(story) -> None:
    """300 points are three pages of 100; the last is 0.299 s after eight."""
    assert rows(story, "run", "many", "last_seen_at") == [(datetime.fromisoformat("2026-07-01T08:00:00.299"),)]


@needs_server
def test_what_does_not_change_keeps_its_fingerprint(story, server: str) -> None:
    assert runs_fingerprint(source(server)) == runs_fingerprint(source(server))


@needs_server
def test_a_folder_is_read_by_mlflow_itself_and_left_as_it_is(shared_data: Path, tmp_path: Path, monkeypatch) -> None:
    """The recorded folder's README: a finished run with 100 points of loss, and one that never ended."""
    folder = tmp_path / "mlruns"
    shutil.copytree(shared_data / "training" / "mlflow" / "convnext_unet" / "mlruns", folder)
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    before = runs_fingerprint(source(str(folder)))
    records = read_runs(source(str(folder)))
    runs = records.tables["tracker_run"].select("run_id", "status").rows()
    assert sorted(runs) == [
        ("6ea7a69c2af146c2b1c1d46a2525fb79", None),
        ("ea71e54bc850434eaa5170c17d564de6", "completed"),
    ]
    assert runs_fingerprint(source(str(folder))) == before
    (folder / "0" / "meta.yaml").touch()
    assert runs_fingerprint(source(str(folder))) != before


@needs_server
def test_a_file_is_read_as_its_server_is(story, server_home: Path, monkeypatch) -> None:
    """Here in pages as large as MLflow gives them."""
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    records = read_runs(source(str(server_home / "m.db")))
    for table, rows_of_server in story[1].tables.items():
        assert records.tables[table].drop("source_name").equals(rows_of_server.drop("source_name")), table


@needs_server
def test_a_folder_that_is_none_of_mlflow_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    (tmp_path / "notes.db").write_text("no database")
    with pytest.raises(SourceError, match=r"notes\.db cannot be opened by MLflow: file is not a database; check"):
        read_runs(source(str(tmp_path / "notes.db")))


def test_a_folder_needs_mlflow(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="read by MLflow itself, which is not on the PATH"):
        read_runs(source(str(tmp_path)))


def test_a_link_in_a_folder_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Else a tag of a run would show any file that the build may read."""
    (tmp_path / "0" / "run" / "tags").mkdir(parents=True)
    (tmp_path / "0" / "run" / "artifacts").symlink_to("/")
    (tmp_path / "0" / "run" / "tags" / "owner").symlink_to("/etc/hostname")
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/true")
    for read in (runs_fingerprint, read_runs):
        with pytest.raises(SourceError, match=r"tags/owner is a link; replace it by what it leads to"):
            read(source(str(tmp_path)))


@needs_server
def test_a_run_source_that_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(UsageError, match="is neither an http address of MLflow nor its mlruns folder or SQLite"):
        read_runs(source("nowhere/mlruns"))
    with pytest.raises(SourceError, match="answers 404"):
        read_runs(source(f"{server}/elsewhere"))


class Answers(BaseHTTPRequestHandler):
    """A server that answers by script, a list of (status, body, headers) by call; it stays at the last one."""

    script: ClassVar[list[tuple[int, str] | tuple[int, str, dict[str, str]]]]
    request_count = 0
    requested_at: ClassVar[list[float]]
    sleeps = 0.0

    def do_POST(self) -> None:
        status, body, *more = self.script[min(type(self).request_count, len(self.script) - 1)]
        type(self).request_count += 1
        self.requested_at.append(time.monotonic())
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        time.sleep(self.sleeps)
        self.send_response(status)
        for name, value in (more[0] if more else {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def trouble() -> Iterator[tuple[str, type[Answers]]]:
    class Own(Answers):
        requested_at: ClassVar[list[float]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", Own
        server.shutdown()


def test_a_busy_server_is_retried(trouble: tuple[str, type[Answers]]) -> None:
    address, server = trouble
    server.script = [(429, "slow down"), (503, "not now"), (200, '{"experiments": []}')]
    assert read_runs(source(address)).tables["tracker_run"].is_empty()
    assert server.request_count == 3


def test_a_server_that_states_when_to_come_back_is_given_that_time(trouble: tuple[str, type[Answers]]) -> None:
    """Retry-After: 2; without it the second try would come at once."""
    address, server = trouble
    server.script = [(429, "slow down", {"Retry-After": "2"}), (200, '{"experiments": []}')]
    assert read_runs(source(address)).tables["tracker_run"].is_empty()
    assert server.requested_at[1] - server.requested_at[0] >= 2


def test_a_server_that_stays_busy_is_unreachable(trouble: tuple[str, type[Answers]]) -> None:
    address, server = trouble
    server.script = [(429, "slow down", {"Retry-After": "0"})]
    with pytest.raises(UnreachableError, match="experiments/search stays busy or broken after 4 tries; try later"):
        read_runs(source(address))


def test_an_answer_that_breaks_off_is_requested_again(trouble: tuple[str, type[Answers]]) -> None:
    """99 bytes were promised."""
    address, server = trouble
    half = (200, '{"experiments": [', {"Content-Length": "99"})
    server.script = [half, (200, '{"experiments": []}')]
    assert read_runs(source(address)).tables["tracker_run"].is_empty()
    server.script, server.request_count = [half], 0
    with pytest.raises(UnreachableError, match="answers half a page, again and again"):
        read_runs(source(address))
    assert server.request_count == 4


def test_a_server_that_hangs_is_unreachable(
    trouble: tuple[str, type[Answers]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.ingest.runs.mlflow._TIMEOUT", (0.2, 0.2))
    address, server = trouble
    server.script, server.sleeps = [(200, "{}")], 0.6
    with pytest.raises(UnreachableError, match="does not answer"):
        read_runs(source(address))
    assert server.request_count > 1


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("null", "an MLflow run has an unexpected form ('NoneType' object is not a mapping); fix or remove it."),
        ('{"data": {}}', "an MLflow run lacks 'info'; fix or remove it."),
        (
            '{"info": {"experiment_id": "1"}, "data": {}}',
            "an MLflow run lacks 'run_id'; fix or remove it.",
        ),
        (
            '{"info": {"experiment_id": "1", "run_id": "a", "start_time": "soon"}, "data": {}}',
            "MLflow run a has an unexpected form (invalid literal for int() with base 10: 'soon'); fix it where it was "
            "written.",
        ),
        (
            '{"info": [], "data": {}}',
            "an MLflow run has an unexpected form (list indices must be integers or slices, not str); fix or remove it",
        ),
    ],
)
def test_a_run_of_another_form_is_left_out_by_the_name_of_its_source(
    trouble: tuple[str, type[Answers]], run: str, message: str
) -> None:
    """The other run of the answer is read."""
    address, server = trouble
    other = '{"info": {"experiment_id": "1", "run_id": "b", "start_time": 0}, "data": {}}'
    server.script = [(200, '{"experiments": [{"experiment_id": "1"}]}'), (200, f'{{"runs": [{run}, {other}]}}')]
    found = read_runs(source(address))
    assert f"[[runs]] lab: {message}" in found.warnings[-1] and len(found.tables[UNREAD]) == 1
    server.request_count = 0
    assert runs_fingerprint(source(address))


def test_half_a_page_is_refused_and_nothing_is_taken_of_it(trouble: tuple[str, type[Answers]]) -> None:
    address, server = trouble
    server.script = [(200, '{"experiments": [{"experiment_id": "1"')]
    with pytest.raises(SourceError, match="answers no JSON"):
        read_runs(source(address))


def test_a_server_that_repeats_its_page_is_reported(trouble: tuple[str, type[Answers]]) -> None:
    address, server = trouble
    server.script = [(200, '{"experiments": [{"experiment_id": "1"}], "next_page_token": "again"}')]
    with pytest.raises(SourceError, match="the same page again and again"):
        read_runs(source(address))


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match="does not answer"):
        read_runs(source(f"http://127.0.0.1:{free_port()}"))
