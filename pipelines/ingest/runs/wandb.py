"""Weights & Biases runs, exported as JSON lines: one run a line of `runs.jsonl`, as its public API shows it.

A line has id, state, created_at, heartbeatAt, config, summary, group, metadata, and history if it was exported with it
(`scan_history`, not the sampled `history`). Ranks of one job are one run by their `group`. W&B knows a host's name, no
instance: `config` may carry `aws.resource_ids` and `aws.account_id` (facts training-runs 1.2, 1.13).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import History, Point, described
from pipelines.ingest.runs.records import (
    DECLARED,
    RunRecords,
    RunRows,
    Tables,
    coalesced,
    is_evaluation,
    keep_latest,
    saved_files,
    utc,
)
from pipelines.ingest.schema import moment_of

_STATES = {"finished": "completed", "failed": "failed", "crashed": "failed", "killed": "killed", "preempted": "killed"}
_REASONS = {"finished": "completed", "crashed": "unknown", "failed": "sw_error", "killed": "user_stop"}


def read(source: RunSource) -> RunRecords:
    """Every run of the source's `*.jsonl` files; ranks that share a group are one run."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    rows = RunRows(source)
    for where, content, _ in saved_files(rows, ".jsonl"):
        for run in _lines(content, where, rows):
            with rows.skipping(f"{where}: run {run['id']}", "export the run again"):
                config = run.get("config") or {}
                is_rank = run.get("job_type") in ("rank", "worker") or "rank" in config
                name = str(config.get(DECLARED) or (run["group"] if run.get("group") and is_rank else run["id"]))
                rows.declared |= {name} if config.get(DECLARED) else set()
                # A run may be in several exports; the last one has its end.
                keep_latest(groups.setdefault(name, {}), str(run["id"]), run, lambda run: run["heartbeat"])
    for name, ranks in sorted(groups.items()):
        rows.add(name, f"[[runs]] {source.name}: run {name}", _run, name, [*ranks.values()], rows.warnings)
    return rows.records(f"{source.location} holds no .jsonl export")


def _lines(content: bytes, where: str, rows: RunRows) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        with rows.skipping(f"{where}, line {number}", "export the run again"):
            run = parse_json(line)
            run["created"] = utc(run["created_at"])
            run["heartbeat"] = utc(run.get("heartbeatAt") or run.get("heartbeat_at") or run["created_at"])
            if run["id"] in (None, ""):
                raise KeyError("id")
            yield run


def _run(run_id: str, ranks: Sequence[Mapping[str, Any]], warnings: list[str]) -> Tables:
    ranks = sorted(ranks, key=lambda run: (run["created"], run["id"]))
    states = [str(run.get("state")) for run in ranks]
    worst = next((s for s in ("crashed", "failed", "killed", "preempted", "running") if s in states), states[0])
    # Ranks may log the same points; the one with the most evaluations has all of them.
    history = History(max((list(_points(run)) for run in ranks), key=_logged))
    started_at, last_at = ranks[0]["created"], max(run["heartbeat"] for run in ranks)
    # Each rank may name the machine it runs on.
    own = [described(run.get("config") or {}, run_id, warnings) for run in ranks]
    resources = {row["resource_id"]: row for _, machines in own for row in machines}
    numbered = [row | {"node_rank": rank} for rank, row in enumerate(resources.values())]
    # A crash has no end of its own: the last heartbeat is.
    ended_at = last_at if worst in _STATES else None
    tables = history.tables(started_at, ended_at, numbered, _REASONS.get(worst))
    tables["attempt"][-1]["last_seen_at"] = last_at
    run = {
        "source_system": "wandb",
        "owner": (ranks[0].get("user") or {}).get("username") if isinstance(ranks[0].get("user"), Mapping) else None,
        "experiment": ranks[0].get("sweep") or ranks[0].get("project"),
        "status": _STATES.get(worst),
        "started_at": started_at,
        "ended_at": ended_at,
        "last_seen_at": last_at,
    }
    return {"run": [coalesced(facts for facts, _ in own) | run], **tables}


def _logged(points: Sequence[Point]) -> tuple[int, int]:
    return sum(is_evaluation(name) for _, _, values in points for name in values), len(points)


def _points(run: Mapping[str, Any]) -> Iterable[Point]:
    """Rows of the history by their own clock: `_runtime` starts again at a resume."""
    for row in run.get("history") or []:
        stamp = row.get("_timestamp")
        if isinstance(stamp, int | float):
            values = {
                name: float(value)
                for name, value in row.items()
                # The API writes values that are not finite as text.
                if (isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity"))
                and not name.startswith("_")
            }
            step = row.get("_step")
            yield moment_of(stamp), int(step) if step is not None else None, values
