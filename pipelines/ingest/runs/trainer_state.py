"""Hugging Face Trainer output: `checkpoint-N/trainer_state.json` below a folder (facts training-runs 1.9).

A state has steps, epochs and scores, but no times and no machines. A checkpoint is dated by its state file, which is
written last; an epoch or a score by the first checkpoint that contains it, so never too early.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import SPEEDS, Row, RunRecords, RunRows, Tables, epoch_count, open_run_store, utc
from pipelines.warehouse.storage import Object

STATE = "trainer_state.json"
_WEIGHTS = ("model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin",
            "model.safetensors.index.json", "pytorch_model.bin.index.json")  # fmt: skip
_OPTIMIZER = ("optimizer.pt", "optimizer.bin", "global_step", "rng_state")


@dataclass(frozen=True)
class _Save:
    """One state file: its folder, its content, and when it was written."""

    folder: str
    content: Mapping[str, Any]
    written_at: datetime | None
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
    rows = RunRows(source)
    for item in listing:
        folder, _, name = item.key.rpartition("/")
        if name == STATE:
            output, _, last = folder.rpartition("/")
            inside = [other for other in listing if folder and other.key.startswith(f"{folder}/")]
            with rows.skipping(store.uri(item.key), "copy the trainer state from the run again"):
                content = _content(store.read(item.key))
                save = _Save(folder, content, utc(item.modified_at), inside, store.uri(folder))
                runs.setdefault(output if last.startswith("checkpoint-") else folder, []).append(save)
    for run, saves in sorted(runs.items()):
        rows.add(run or source.name, f"{saves[-1].uri}/{STATE}", _run, saves)
    return rows.records(f"{store.location} holds no {STATE}")


def _content(text: bytes) -> Mapping[str, Any]:
    content = parse_json(text)
    int(content["global_step"])
    float(content["epoch"] or 0)
    return content


def _run(saves: list[_Save]) -> Tables:
    saves = sorted(saves, key=lambda save: (save.step, save.written_at))
    times = [save.written_at for save in saves if save.written_at]
    last = saves[-1].content
    is_done = bool(last.get("max_steps")) and last["global_step"] >= last["max_steps"]
    span = {"started_at": min(times), "ended_at": max(times) if is_done else None, "last_seen_at": max(times)}
    status = "completed" if is_done else None
    scores: dict[tuple[str, int], Row] = {}
    epochs: dict[int, Row] = {}
    for save in saves:
        for entry in save.content.get("log_history") or []:
            for key, value in entry.items():
                if key.startswith("eval_") and not key.endswith(SPEEDS) and isinstance(value, int | float):
                    step = int(entry.get("step", save.step))
                    score = {"metric": key, "value": float(value), "step": step, "split": "eval"}
                    scores.setdefault((key, step), score | {"evaluated_at": save.written_at})
        position = float(save.content["epoch"] or 0)
        for number in range(1, epoch_count(position, is_end=is_done and save is saves[-1]) + 1):
            # The tokens are those of the state, so they are known only where it is at the end of the epoch.
            at_end = math.isclose(position, number, abs_tol=1e-6) or number > position
            known = {"step": save.step, "tokens_seen": _tokens(save)} if at_end else {}
            epochs.setdefault(number, {"epoch_index": number, "completed_at": save.written_at} | known)
    return {
        "run": [span | {"source_system": "trainer_state", "experiment": last.get("trial_name"), "status": status}],
        "attempt": [span | {"end_reason": status}],
        "epoch": epochs.values(),
        "checkpoint": [_checkpoint(s) for s in saves if s.folder.rpartition("/")[2].startswith("checkpoint-")],
        "evaluation": scores.values(),
    }


def _tokens(save: _Save) -> Any:
    return save.content.get("num_input_tokens_seen") or None


def _checkpoint(save: _Save) -> Row:
    names = [item.key.removeprefix(f"{save.folder}/") for item in save.objects]
    return {
        "checkpoint_id": save.folder,
        "step": save.step,
        "uri": save.uri,
        "durable_at": save.written_at,
        "bytes": sum(item.size for item in save.objects),
        # Weights without the optimizer's state do not resume the run.
        "is_resumable": any(name.startswith(_OPTIMIZER) for name in names),
        "is_complete": any(name in _WEIGHTS for name in names),
        "tokens_seen": _tokens(save),
    }
