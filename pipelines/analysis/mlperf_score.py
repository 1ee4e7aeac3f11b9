"""The score of an MLPerf Training submission: the olympic mean of its runs (facts training-runs 1.11)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

# Runs a result needs, and how many of the best and of the worst are left out.
RUNS = {"resnet": 5, "ssd": 5, "gpt3": 3, "llama31_405b": 3, "unet3d": 40}
DROPPED = {"unet3d": 4}
ORDINARY_RUNS, ORDINARY_DROPPED = 10, 1


def mlperf_score(benchmark: str, seconds: Sequence[float | None]) -> float | None:
    """Mean seconds from run_start to run_stop without the best and the worst runs; None where the result is void.

    `seconds` are of all runs of one result; None is a run that was aborted or did not converge. It counts as a worst
    one, so more of them than are left out at that end void the result. ValueError for another number of runs.
    """
    wanted, dropped = RUNS.get(benchmark, ORDINARY_RUNS), DROPPED.get(benchmark, ORDINARY_DROPPED)
    if len(seconds) != wanted:
        raise ValueError(f"{benchmark} is scored over {wanted} runs, not {len(seconds)}")
    converged = sorted(second for second in seconds if second is not None)
    if wanted - len(converged) > dropped:
        return None
    return fmean(converged[dropped : wanted - dropped])
