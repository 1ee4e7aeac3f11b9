"""Run events as the training processes wrote them: JSON lines, one file per process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import PurePosixPath

from pipelines.demo.timeline import Timeline, rfc3339


def event_files(timelines: Iterable[Timeline]) -> dict[str, bytes]:
    """File content by path below the events folder: <team>/<run_id>/attempt-<n>-rank-<r>.jsonl."""
    files: dict[str, bytes] = {}
    for played in timelines:
        run = played.run
        folder = PurePosixPath(run.workload.team) / run.id
        ordered = sorted(played.events, key=lambda event: (event.attempt, event.rank, event.at))
        for (attempt, rank), written in groupby(ordered, key=lambda event: (event.attempt, event.rank)):
            lines = (
                json.dumps(
                    {
                        "event": event.name,
                        "run_id": run.id,
                        **({} if event.name.startswith("run_") else {"attempt": event.attempt}),
                        "at": rfc3339(event.at),
                        **event.values,
                    }
                )
                for event in written
            )
            files[str(folder / f"attempt-{attempt}-rank-{rank}.jsonl")] = ("\n".join(lines) + "\n").encode()
    return files
