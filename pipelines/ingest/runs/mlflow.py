"""MLflow runs over its REST API: `location` is a tracking server's address, or an `mlruns` folder or SQLite file.

A deleted run still cost money and is read too. MLflow records no instances unless tags do (`aws.resource_ids`,
`aws.account_id`, `aws.region`); its start and end hide restarts, which show in the metrics. A folder or file is served
by MLflow itself on loopback for as long as it is read.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipelines.base.address import redacted
from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import REASONS, History, Point, described
from pipelines.ingest.runs.records import DECLARED, RunRecords, RunRows, Tables, at_ms

_STATUS = {"FINISHED": "completed", "FAILED": "failed", "KILLED": "killed"}
_PAGE = 1000
_HISTORY_PAGE = 25_000
_TIMEOUT = (5, 60)
_TRIES = 4
_LONGEST_WAIT = 60
# The folder of a run that holds its files, and no records.
_ARTIFACTS = "artifacts"


def state(source: RunSource) -> str:
    """A digest of the server's records of all runs, without their histories, where a new point changes the last values;
    of a store's files their names, sizes and times, without artifacts.
    """
    seal = hashlib.sha256()
    if path := _local(source):
        files = [path] if path.is_file() else (Path(folder) / name for folder, name in _recorded(path))
        entries = sorted(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
        seal.update("\n".join(entries).encode())
        return seal.hexdigest()
    for run, _ in _Server(source.location).runs():
        seal.update(json.dumps(run, sort_keys=True).encode())
    return seal.hexdigest()


def read(source: RunSource) -> RunRecords:
    """Every run of every experiment, deleted ones too, with the whole history of its metrics."""
    where = f"[[runs]] {source.name}"
    rows = RunRows(source)
    run_ids: dict[str, str] = {}
    with served(path, where) if (path := _local(source)) else nullcontext(source.location) as address:
        server = _Server(address)
        for found, experiments in server.runs():
            with rows.skipping(f"{where}: an MLflow run"):
                run = {**found, "experiments": experiments}
                own = run["info"]["run_id"]
                tags = {tag["key"]: tag["value"] for tag in run["data"].get("tags") or ()}
                run_ids[own] = rows.id_of(tags, own)
                rows.add(run_ids[own], f"{where}: MLflow run {own}", _run, run, tags, server, rows.warnings)
    # A parent is named by MLflow's own id.
    for row in rows.runs:
        row["parent_run_id"] = run_ids.get(str(row["parent_run_id"]), row["parent_run_id"])
    return rows.records()


def _local(source: RunSource) -> Path | None:
    """The folder or file of a source that is no server. UsageError where there is neither."""
    if source.location.startswith(("http://", "https://")):
        return None
    path = Path(source.location)
    if "://" not in source.location and path.exists():
        return path.resolve()
    where = f"[[runs]] {source.name}: location {redacted(source.location)}"
    raise UsageError(f"{where} is neither an http address of MLflow nor its mlruns folder or SQLite file.")


class _Server:
    """The few calls needed of a tracking server, paged, with retries while it is busy."""

    def __init__(self, address: str):
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        self._root = address.rstrip("/") + "/api/2.0/mlflow/"
        self._address = redacted(self._root)
        self._session = requests.Session()
        # A search is a POST that changes nothing, so it may be repeated.
        again = {"allowed_methods": None, "status_forcelist": (429, 500, 502, 503, 504), "backoff_factor": 0.5}
        # A server may ask for a longer wait, but not for a day.
        patience = Retry(_TRIES, retry_after_max=_LONGEST_WAIT, **again)
        self._session.mount(address, HTTPAdapter(max_retries=patience))

    def runs(self) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Each run as answered, with the names of all experiments by id."""
        listed = self._paged("experiments/search", "experiments", {"view_type": "ALL", "max_results": _PAGE})
        names = {experiment["experiment_id"]: experiment.get("name") for experiment in listed}
        if not names:
            return
        query = {
            "experiment_ids": sorted(names),
            "run_view_type": "ALL",
            "max_results": _PAGE,
            "order_by": ["attributes.start_time ASC", "attributes.run_id ASC"],
        }
        for run in self._paged("runs/search", "runs", query):
            yield run, names

    def history(self, run_id: str, key: str) -> Iterator[Mapping[str, Any]]:
        query = {"run_id": run_id, "metric_key": key, "max_results": _HISTORY_PAGE}
        yield from self._paged("metrics/get-history", "metrics", query, method="GET")

    def _paged(self, call: str, part: str, query: dict[str, Any], method: str = "POST") -> Iterator[Mapping[str, Any]]:
        token, met = None, set()
        while True:
            answer = self._ask(call, query | ({"page_token": token} if token else {}), method)
            yield from answer.get(part) or ()
            token = answer.get("next_page_token")
            if not token:
                return
            if token in met:
                raise SourceError(f"{self._address}{call} gives the same page again and again; restart the server.")
            met.add(token)

    def _ask(self, call: str, query: dict[str, Any], method: str) -> Mapping[str, Any]:
        import requests

        where = f"{self._address}{call}"
        arguments: dict[str, Any] = {"params" if method == "GET" else "json": query}
        problem: SourceError | None = None
        for _ in range(_TRIES):
            try:
                response = self._session.request(method, self._root + call, timeout=_TIMEOUT, **arguments)
                response.raise_for_status()
                answer = parse_json(response.content)
            except requests.HTTPError as error:
                status = error.response.status_code if error.response is not None else "nothing"
                raise SourceError(f"{where} answers {status}; check the address.") from None
            # An answer that breaks off is requested again, which the adapter does not do.
            except ParseError:
                problem = SourceError(f"{where} answers no JSON; check that it is an MLflow tracking server.")
            except requests.exceptions.ChunkedEncodingError:
                problem = UnreachableError(f"{where} answers half a page, again and again; try later.")
            except requests.exceptions.RetryError:
                raise UnreachableError(f"{where} stays busy or broken after {_TRIES} tries; try later.") from None
            except requests.RequestException as error:
                kind = type(error).__name__
                raise UnreachableError(f"{where} does not answer ({kind}); start it or try later.") from None
            else:
                if not isinstance(answer, Mapping):
                    raise SourceError(f"{where} answers no JSON object; check that it is an MLflow tracking server.")
                return answer
        raise problem or AssertionError("unreachable")


def _points(run: Mapping[str, Any], server: _Server) -> Iterator[Point]:
    for metric in run["data"].get("metrics") or ():
        # Machine counters show no progress, and are most of a history.
        if not metric["key"].startswith("system/"):
            for point in server.history(run["info"]["run_id"], metric["key"]):
                if at := at_ms(point["timestamp"]):
                    yield at, int(point.get("step") or 0), {metric["key"]: float(point["value"])}


def _run(run: Mapping[str, Any], tags: Mapping[str, str], server: _Server, warnings: list[str]) -> Tables:
    info = run["info"]
    run_id = tags.get(DECLARED) or info["run_id"]
    parameters = {one["key"]: one["value"] for one in run["data"].get("params") or ()} | dict(tags)
    started_at, ended_at = at_ms(info.get("start_time")), at_ms(info.get("end_time"))
    history = History(list(_points(run, server)))
    status = str(info.get("status"))
    if started_at is None:
        warnings.append(f"MLflow run {run_id} has no start_time and is left out; set it in MLflow, or delete the run.")
        return {}
    if ended_at is None and status == "RUNNING":
        open_ended = "never ended: it is running or was killed; its end is inferred from its metrics"
        warnings.append(f"MLflow run {run_id} {open_ended}. End it in MLflow if it no longer runs.")
    facts, resources = described(parameters, run_id, warnings)
    tables = history.tables(started_at, ended_at, resources, REASONS[_STATUS.get(status)])
    found = {
        "source_system": "mlflow",
        "owner": facts["owner"] or tags.get("mlflow.user") or info.get("user_id") or None,
        "experiment": facts["experiment"] or run["experiments"].get(info.get("experiment_id")),
        "parent_run_id": tags.get("parent_run_id") or tags.get("mlflow.parentRunId"),
        # MLflow nests the trials of a sweep.
        "purpose": facts["purpose"] or ("sweep_trial" if tags.get("mlflow.parentRunId") else None),
        "status": _STATUS.get(status),
    }
    last_at = max(at for at in (started_at, ended_at, history.last_at) if at)
    span = {"started_at": started_at, "ended_at": ended_at, "last_seen_at": last_at}
    return {"run": [facts | found | span], **tables}


_START_SECONDS = 180
# The server would start processes for jobs of its own.
_NO_JOBS = "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false"


@contextmanager
def served(path: Path, where: str) -> Iterator[str]:
    """The address of a tracking server over a copy of the store, which is stopped at the end; `where` begins errors.

    UsageError where MLflow is not installed, SourceError where it cannot open the store.
    """
    mlflow = shutil.which("mlflow")
    if mlflow is None:
        raise UsageError(
            f"{where}: {path} is read by MLflow itself, which is not on the PATH; install it "
            "(`uv tool install mlflow`), or write the address of a tracking server."
        )
    with TemporaryDirectory(prefix="trainledger-mlflow-") as folder:
        store = f"sqlite:///{folder}/mlflow.db"
        with (Path(folder) / "log").open("w+") as log:
            subject = f"{where}: {path}"
            try:
                made = subprocess.run([mlflow, *_copy(path, Path(folder), store)], stdout=log, stderr=log)
            except sqlite3.Error as error:
                raise _refused(subject, str(error)) from None
            if made.returncode:
                raise _refused(subject, _last_line(log.name))
            with closing(socket.create_server(("127.0.0.1", 0))) as free:
                port = free.getsockname()[1]
            command = ["env", _NO_JOBS, mlflow, "server", "--backend-store-uri", store, "--workers", "1"]
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(port)],
                stdout=log, stderr=log, cwd=folder, start_new_session=True,
            )  # fmt: skip
            try:
                _wait(f"http://127.0.0.1:{port}", process, subject, log.name)
                yield f"http://127.0.0.1:{port}"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _recorded(path: Path) -> Iterator[tuple[str, str]]:
    for folder, below, names in os.walk(path):
        _left_out(folder, [*below, *names])
        below[:] = [name for name in below if name != _ARTIFACTS]
        yield from ((folder, name) for name in names)


def _left_out(folder: str, names: Sequence[str]) -> tuple[str, ...]:
    """What of a folder is not read. SourceError for a link: any file of this machine could become a tag of a run."""
    for name in names:
        if name != _ARTIFACTS and (link := Path(folder, name)).is_symlink():
            raise SourceError(f"{link} is a link; replace it by what it leads to (nothing outside is read).")
    return (_ARTIFACTS,)


def _copy(path: Path, folder: Path, store: str) -> tuple[str, ...]:
    """Copy what was recorded to `folder`; returns the command of MLflow that makes `store` of it, in its own schema."""
    if path.is_file():
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(folder / "mlflow.db")) as copy,
        ):
            source.backup(copy)
        return "db", "upgrade", store
    shutil.copytree(path, folder / "mlruns", ignore=_left_out)
    return "migrate-filestore", "--source", str(folder), "--target", store


def _wait(address: str, process: subprocess.Popen[bytes], subject: str, log: str) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), direct.open(f"{address}/health", timeout=2):
            return
        time.sleep(0.2)
    raise _refused(subject, _last_line(log))


def _last_line(log: str) -> str:
    lines = Path(log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it gives no reason"


def _refused(subject: str, reason: str) -> SourceError:
    fix = "check that it is an mlruns folder or SQLite file"
    return SourceError(f"{subject} cannot be opened by MLflow: {reason}; {fix}.")
