"""Measures pieces of work, each as its own process: seconds and peak memory as the operating system counts them."""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pipelines.bench.report import Run

# PR_SET_CHILD_SUBREAPER of prctl(2): processes that outlive their parent become ours, as Spark's JVM does.
_ADOPT = 36


def task(name: str, place: Path, lines: int = 0) -> Run:
    """One piece of work at a place, as its own process: a child's peak memory starts at its parent's."""
    return timed(["-m", "pipelines.bench.task", name, str(place), "--lines", str(lines)])


def timed(arguments: list[str], code: int = 0, environment: Mapping[str, str] | None = None) -> Run:
    """Run Python with these arguments to the end, which leaves with `code`; the operating system measures it.

    Processes that it leaves behind count until they end; the peak is that of the largest process.
    """
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    started = time.perf_counter()
    changed = [f"{name}={value}" for name, value in (environment or {}).items()]
    process = subprocess.Popen(
        ["env", *changed, sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, own = os.wait4(process.pid, 0)
    wall, used = time.perf_counter() - started, [own]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != code:
        raise SystemExit(f"{' '.join(arguments)} failed: {errors.strip().splitlines()[-1]}")
    while True:
        try:
            used.append(os.wait4(-1, 0)[2])
        except ChildProcessError:
            break
    return Run(wall, sum(one.ru_utime + one.ru_stime for one in used), max(one.ru_maxrss for one in used) / 1024)


def median(runs: list[Run]) -> Run:
    return Run(
        statistics.median(run.wall for run in runs),
        statistics.median(run.cpu for run in runs),
        max(run.peak_mib for run in runs),
    )
