"""Weights & Biases runs, exported as JSON lines: one run a line of `runs.jsonl`, as its public API shows it.

A line has id, state, created_at, heartbeatAt, config, summary, group, metadata, and history if it was exported with it
(`scan_history`, not the sampled `history`). Ranks of one job are one run by their `group`. W&B knows a host's name, no
instance: `config` may carry `aws.resource_ids` and `aws.account_id` (facts training-runs 1.2, 1.13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import moment_of, telling
from pipelines.ingest.runs.metrics import History, described, stays
from pipelines.ingest.runs.records import DECLARED, RunRecords, listed_state, open_run_store, records

state = listed_state

_STATES = {"finished": "completed", "failed": "failed", "crashed": "failed", "killed": "killed", "preempted": "killed"}
_REASONS = {"finished": "completed", "crashed": "unknown", "failed": "sw_error", "killed": "user_stop"}


def read(source: RunSource) -> RunRecords:
    """Every run of the source's `*.jsonl` files; ranks that share a group are one run."""
    store = open_run_store(source)
    keys = [item.key for item in store.list() if item.key.endswith(".jsonl")]
    warnings = [] if keys else [f"{store.location} holds no .jsonl export: no run is recorded there yet."]
    groups: dict[str, list[dict[str, Any]]] = {}
    declared: list[str] = []
    for key in keys:
        for told in _lines(store.read(key), store.uri(key)):
            is_rank = told.get("job_type") in ("rank", "worker") or "rank" in (told.get("config") or {})
            given = (told.get("config") or {}).get(DECLARED)
            name = given or (told["group"] if told.get("group") and is_rank else told["id"])
            declared += [str(given)] if given else []
            groups.setdefault(str(name), []).append(told)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, ranks in sorted(groups.items()):
        with telling(f"[[runs]] {source.name}: run {name}"):
            for table, found in _run(name, ranks, warnings).items():
                rows.setdefault(table, []).extend(found)
    return records(source, rows, warnings, declared)


def _lines(content: bytes, where: str) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            told = parse_json(line)
            told["created"] = _moment(told["created_at"])
            told["heartbeat"] = _moment(told.get("heartbeatAt") or told.get("heartbeat_at") or told["created_at"])
            if told["id"] in (None, ""):
                raise KeyError("id")
        except (ValueError, KeyError, TypeError) as error:
            missing = f" ({error.args[0]} is missing)" if isinstance(error, KeyError) else ""
            raise SourceError(
                f"{where}, line {number} is no exported run with id, created_at and state{missing}; export it again."
            ) from None
        yield told


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


def _run(run_id: str, ranks: Sequence[Mapping[str, Any]], warnings: list[str]) -> dict[str, list[dict[str, Any]]]:
    first = min(ranks, key=lambda told: (told["created"], told["id"]))
    states = [str(told.get("state")) for told in ranks]
    worst = next((s for s in ("crashed", "failed", "killed", "preempted") if s in states), states[0])
    config = {**(first.get("config") or {})}
    history = History([point for told in ranks[:1] for point in _points(told)])
    started_at, last_at = first["created"], max(told["heartbeat"] for told in ranks)
    attempts = history.attempts(started_at, last_at)
    facts, resources = described(config, run_id, warnings)
    reason = _REASONS.get(worst)
    return {
        "run": [
            facts
            | {
                "run_id": run_id,
                "source_system": "wandb",
                "owner": (first.get("user") or {}).get("username") if isinstance(first.get("user"), Mapping) else None,
                "experiment": first.get("sweep") or first.get("project"),
                "status": _STATES.get(worst),
                "started_at": started_at,
                # A crash has no end of its own: the last heartbeat is.
                "ended_at": last_at if worst in _STATES else None,
                "last_seen_at": last_at,
            }
        ],
        "attempt": [
            {"run_id": run_id, **attempt}
            | ({"end_reason": reason} if attempt["attempt_no"] == len(attempts) and reason else {})
            for attempt in attempts
        ],
        "resource": stays(run_id, attempts, resources),
        "epoch": [{"run_id": run_id, **epoch} for epoch in history.epochs(attempts)],
        "evaluation": [{"run_id": run_id, **score} for score in history.evaluations(attempts)],
    }


def _points(told: Mapping[str, Any]) -> Iterable[tuple[datetime, int | None, dict[str, float]]]:
    """Rows of the history by their own clock: `_runtime` starts again at a resume."""
    for row in told.get("history") or []:
        stamp = row.get("_timestamp")
        if isinstance(stamp, int | float):
            values = {k: float(v) for k, v in row.items() if _is_number(v) and not k.startswith("_")}
            step = row.get("_step")
            yield moment_of(stamp), int(step) if step is not None else None, values


def _is_number(value: Any) -> bool:
    # What is none, the API writes as text.
    return isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity")
