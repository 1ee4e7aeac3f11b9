"""Two registered comparisons on small machines, three runs a side: one that Trainium wins and one that it loses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pipelines.demo.company import VISION
from pipelines.demo.scenario import Node, Run, Workload, utc
from pipelines.demo.workloads import EMBEDDER, SPEECH

_FIRST = utc("2026-06-18 02:10:00")


def _runs(workload: Workload, name: str, machine: str, first_day: int, seconds: int) -> Iterator[Run]:
    """Three runs of three epochs, a day apart, that reach the target with their last."""
    target, sign = workload.target_value, 1 if workload.target_direction == "max" else -1
    for number in (1, 2, 3):
        yield Run(
            f"{name}-{number}",
            workload,
            "jonas",
            (Node(f"{name}-{number}", machine, VISION, "us-west-2b" if machine != "g6.xlarge" else "us-east-1b"),),
            _FIRST + timedelta(days=first_day + number),
            epoch_seconds=seconds + 40 * number,
            metric=tuple(round(target + sign * step, 4) for step in (-0.09, -0.03, 0.001 * number)),
            compile_seconds=60,
            save_bytes=1_300_000_000,
            eval_seconds=60,
        )


RUNS = (
    *_runs(EMBEDDER, "embed-g6e", "g6e.12xlarge", 0, 3_600),
    *_runs(EMBEDDER, "embed-trn1", "trn1.2xlarge", 3, 6_300),
    *_runs(SPEECH, "speech-g6", "g6.xlarge", 0, 1_900),
    *_runs(SPEECH, "speech-trn1", "trn1.2xlarge", 3, 6_400),
)
