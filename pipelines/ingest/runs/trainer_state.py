"""Hugging Face Trainer output: `checkpoint-N/trainer_state.json` below a folder (facts training-runs 1.9).

A state tells steps, epochs and scores, but no time and no machine. The time of a checkpoint is when its state file was
written, which is last; an epoch or a score is dated by the first checkpoint that tells it, so never too early.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import MALFORMED, epoch_count, telling
from pipelines.ingest.runs.records import RunRecords, listed_state, open_run_store, records
from pipelines.warehouse.storage import Object, Store

state = listed_state

STATE = "trainer_state.json"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_OPTIMIZER = ("optimizer.pt", "optimizer.bin", "global_step", "rng_state")


@dataclass(frozen=True)
class _Save:
    """One state file: the folder it is in, what it says, and when it was written."""

    folder: str
    content: Mapping[str, Any]
    written_at: datetime
    objects: Sequence[Object]
    uri: str

    @property
    def step(self) -> int:
        return int(self.content["global_step"])


def read(source: RunSource) -> RunRecords:
    """One run per output folder; its id is the folder's path, or the source's name at the root."""
    store = open_run_store(source)
    listing = store.list()
    runs: dict[str, list[_Save]] = {}
    for item in listing:
        folder, _, name = item.key.rpartition("/")
        if name == STATE:
            output, _, last = folder.rpartition("/")
            run = output if last.startswith("checkpoint-") else folder
            beside = [other for other in listing if folder and other.key.startswith(f"{folder}/")]
            save = _Save(folder, _content(store, item.key), _naive(item.modified_at), beside, store.uri(folder))
            runs.setdefault(run, []).append(save)
    rows: dict[str, list[dict[str, Any]]] = {}
    for run, saves in sorted(runs.items()):
        with telling(f"{saves[-1].uri}/{STATE}"):
            for table, found in _run(run or source.name, sorted(saves, key=lambda s: (s.step, s.written_at))).items():
                rows.setdefault(table, []).extend(found)
    warnings = [] if runs else [f"{store.location} holds no {STATE}: no run is recorded there yet."]
    return records(source, rows, warnings)


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)


def _content(store: Store, key: str) -> Mapping[str, Any]:
    try:
        content = parse_json(store.read(key))
        int(content["global_step"])
        float(content["epoch"] or 0)
    except MALFORMED:
        raise SourceError(
            f"{store.uri(key)} is no trainer state with global_step and epoch; copy it from the run again."
        ) from None
    return content


def _run(run_id: str, saves: list[_Save]) -> dict[str, list[dict[str, Any]]]:
    first_at, last_at = min(s.written_at for s in saves), max(s.written_at for s in saves)
    last = saves[-1].content
    is_done = bool(last.get("max_steps")) and last["global_step"] >= last["max_steps"]
    span = {"run_id": run_id, "started_at": first_at, "ended_at": last_at if is_done else None, "last_seen_at": last_at}
    attempt = {"run_id": run_id, "attempt_no": 1}
    scores: dict[tuple[str, int], dict[str, Any]] = {}
    epochs: dict[int, dict[str, Any]] = {}
    for save in saves:
        seen = save.content.get("num_input_tokens_seen") or None
        for entry in save.content.get("log_history") or []:
            for key, value in entry.items():
                if key.startswith("eval_") and _is_score(key, value):
                    place = (key, int(entry.get("step", save.step)))
                    scores.setdefault(place, attempt | _score(key, place[1], float(value), save))
        for number in range(1, _whole(save.content["epoch"]) + 1):
            if number not in epochs:
                # The state says how far it is, so the tokens are known only where it is at the end of the epoch.
                at_end = math.isclose(float(save.content["epoch"]), number, abs_tol=1e-6)
                epochs[number] = attempt | {
                    "epoch_index": number,
                    "completed_at": save.written_at,
                    "step": save.step if at_end else None,
                    "tokens_seen": seen if at_end else None,
                }
    return {
        "run": [
            span
            | {
                "source_system": "trainer_state",
                "experiment": last.get("trial_name"),
                "status": "completed" if is_done else None,
            }
        ],
        "attempt": [span | attempt | {"end_reason": "completed" if is_done else None}],
        "epoch": list(epochs.values()),
        "checkpoint": [attempt | _checkpoint(save) for save in saves if _is_checkpoint(save)],
        "evaluation": list(scores.values()),
    }


def _is_checkpoint(save: _Save) -> bool:
    return save.folder.rpartition("/")[2].startswith("checkpoint-")


def _checkpoint(save: _Save) -> dict[str, Any]:
    names = [item.key.removeprefix(f"{save.folder}/") for item in save.objects]
    has_weights = any(name in _WEIGHTS or name in _INDEXES for name in names)
    return {
        "checkpoint_id": save.folder,
        "step": save.step,
        "uri": save.uri,
        "durable_at": save.written_at,
        "bytes": sum(item.size for item in save.objects),
        # Weights that cannot be trained on from here protect nothing.
        "is_resumable": any(name.startswith(_OPTIMIZER) for name in names),
        "is_complete": has_weights,
        "tokens_seen": save.content.get("num_input_tokens_seen") or None,
    }


def _score(key: str, step: int, value: float, save: _Save) -> dict[str, Any]:
    return {"metric": key, "value": value, "step": step, "split": "eval", "evaluated_at": save.written_at}


def _is_score(key: str, value: Any) -> bool:
    is_speed = key.endswith(("_runtime", "_per_second", "_model_preparation_time"))
    return not is_speed and isinstance(value, int | float)


def _whole(epoch: Any) -> int:
    # The last epoch may read 2.97 where a partial accumulation was dropped: it is not rounded up to a whole one.
    return epoch_count(float(epoch or 0))
