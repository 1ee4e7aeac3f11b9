"""Measures pieces of work, each as its own process: seconds and peak memory as the operating system counts them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from pipelines.bench.report import Run


def task(name: str, place: Path, lines: int = 0) -> Run:
    """One piece of work at a place, as its own process: a child's peak memory starts at its parent's."""
    return timed(["-m", "pipelines.bench.task", name, str(place), "--lines", str(lines)])


def timed(arguments: list[str], code: int = 0) -> Run:
    """Run Python with these arguments to the end, which leaves with `code`; the operating system measures it."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != code:
        raise SystemExit(f"{' '.join(arguments)} failed: {errors.strip().splitlines()[-1]}")
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def median(runs: list[Run]) -> Run:
    return Run(
        statistics.median(run.wall for run in runs),
        statistics.median(run.cpu for run in runs),
        max(run.peak_mib for run in runs),
    )
