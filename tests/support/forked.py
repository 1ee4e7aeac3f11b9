"""The command in processes that can be killed: each is forked from one that has imported everything.

`python -m support.forked` reads commands as JSON lines, and answers each with its process id, then with how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from support.reader import write

# What a command on a bill of a few lines may take.
MOST_BYTES, MOST_SECONDS = 4 << 30, 60
TESTS = Path(__file__).resolve().parents[1]
_CHANGES = ("os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate")


@dataclass(frozen=True)
class Kill:
    """Dies at the change number `at` of files in a phase ("" for any): before it, or `delay` seconds later."""

    at: int
    phase: str = ""
    delay: float | None = None


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: by a signal), what it printed, changed by phase, and used."""

    code: int
    out: str
    err: str
    changes: dict[str, int] = field(default_factory=dict)
    died_in: str = ""
    peak_bytes: int = 0
    processor_seconds: float = 0

    @property
    def error(self) -> str:
        """The last line, a sentence of error."""
        assert "Traceback" not in self.err, self.err
        last = self.err.splitlines()[-1]
        assert last.startswith("Error: ") and last.endswith("."), self.err
        return last.removeprefix("Error: ")


class Commands:
    """Runs commands one after another, each in a process of its own."""

    def __init__(self, **environment: str):
        more = {"PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}", "OPENBLAS_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "support.forked"],
            env=os.environ | more | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def start(self, *words: object, kill: Kill | None = None, **environment: str) -> int:
        """The process id of a command that has begun; `end` waits for it.

        The command `support.lake_builds` is that module's `main`.
        """
        killed = [kill.at, kill.phase, kill.delay] if kill else None
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([[*map(str, words)], killed, environment]) + "\n")
        self._server.stdin.flush()
        return self._answer()

    def end(self) -> Ended:
        """How the command ended that was started; it took no more than any may."""
        ended = Ended(**self._answer())
        assert ended.peak_bytes < MOST_BYTES and ended.processor_seconds < MOST_SECONDS, ended
        return ended

    def run(self, *words: object, kill: Kill | None = None, **environment: str) -> Ended:
        self.start(*words, kill=kill, **environment)
        return self.end()

    def _answer(self) -> Any:
        assert self._server.stdout is not None
        return json.loads(self._server.stdout.readline())


def phase_of(command: str, path: str) -> str:
    """The part of a command that changes a file: ingest, build, publication, pack or prune."""
    if command in ("report", "prune"):
        return {"report": "pack"}.get(command, command)
    if "/publications/" in path or "marts.duckdb" in path:
        return "publication"
    return "ingest" if "/raw/" in path else "build"


def _watch(command: str, kill: Kill, note: int) -> Counter[str]:
    """Count the changes that this process makes to files, and die at one of them."""
    counts: Counter[str] = Counter()
    is_dying = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal is_dying
        if event == "open":
            is_change = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        else:
            is_change = event in _CHANGES
        if not is_change or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.fsdecode(arguments[0])
        if path.startswith(("/dev/", "/proc/")):
            return
        phase = phase_of(command, path)
        counts[phase] += 1
        reached = counts[kill.phase] if kill.phase else counts.total()
        if reached == kill.at and not is_dying:
            is_dying = True
            os.write(note, json.dumps([counts, phase]).encode())
            if kill.delay is None:
                os.kill(os.getpid(), signal.SIGKILL)
            # Nothing handles it, so it ends the process at once, also within a library.
            signal.setitimer(signal.ITIMER_REAL, kill.delay)

    sys.addaudithook(hook)
    return counts


def _child(words: list[str], kill: Kill | None, environment: dict[str, str], out: Any, err: Any, note: int) -> NoReturn:
    from pipelines.cli import main

    os.environ.update(environment)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.argv = ["trainledger", *words]
    code: Any = 0
    counts = _watch(words[0], kill, note) if kill else {}
    try:
        if words[0] == "support.lake_builds":
            from support.lake_builds import main as build

            build(*words[1:])
        else:
            main()
    except SystemExit as left:
        code = left.code
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fstat(note).st_size == 0:
        os.write(note, json.dumps([counts, ""]).encode())
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _serve() -> None:
    for name in (
        "pipelines.cli", "pipelines.models.build", "pipelines.models.command", "pipelines.models.publish",
        "pipelines.models.refresh", "pipelines.present.command", "pipelines.report.command", "pipelines.evidence.pack",
        "polars", "duckdb", "deltalake", "pyarrow.parquet", "sqlglot", "boto3", "altair",
    ):  # fmt: skip
        __import__(name)
    for line in sys.stdin:
        words, killed, environment = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as note:
            child = os.fork()
            if not child:
                kill = Kill(*killed) if killed else None
                _child(words, kill, environment, out, err, note.fileno())
            write(str(child))
            _, status, used = os.wait4(child, 0)
            out.seek(0), err.seek(0), note.seek(0)
            changes, died_in = json.loads(note.read() or '[{}, ""]')
            ended = Ended(
                os.waitstatus_to_exitcode(status),
                out.read().decode(errors="replace"),
                err.read().decode(errors="replace"),
                changes,
                died_in,
                used.ru_maxrss * 1024,
                used.ru_utime + used.ru_stime,
            )
            write(json.dumps(vars(ended)))


if __name__ == "__main__":
    _serve()
