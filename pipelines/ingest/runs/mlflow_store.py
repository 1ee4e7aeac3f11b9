"""An `mlruns` folder or SQLite file, served by MLflow itself on loopback for as long as it is read."""

import hashlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.base.errors import SourceError, UsageError

_START_SECONDS = 180
# The server would start processes for jobs of its own.
_NO_JOBS = "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false"


def local_state(path: Path) -> str:
    """A digest of the names, sizes and times of a store's files; artifacts do not count."""
    files = [path] if path.is_file() else (Path(folder) / name for folder, name in _recorded(path))
    entries = sorted(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    return hashlib.sha256("\n".join(entries).encode()).hexdigest()


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
        below[:] = [name for name in below if name != "artifacts"]
        yield from ((folder, name) for name in names)


def _copy(path: Path, folder: Path, store: str) -> tuple[str, ...]:
    """Copy what was recorded to `folder`; returns the command of MLflow that makes `store` of it, in its own schema."""
    if path.is_file():
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(folder / "mlflow.db")) as copy,
        ):
            source.backup(copy)
        return "db", "upgrade", store
    shutil.copytree(path, folder / "mlruns", ignore=shutil.ignore_patterns("artifacts"))
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
