"""Lightning's `metrics.csv` below a folder, one run a file, with its checkpoints (facts training-runs 1.10).

The csv has steps and scores but no times and no machines. The file's own time ends the run; epochs and scores are dated
by it too, unless a checkpoint of that epoch was written before. Lightning counts epochs from 0, we from 1.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.base.errors import MalformedError
from pipelines.base.parse import reading
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords, RunRows, epoch_count, is_evaluation, open_run_store, utc
from pipelines.warehouse.storage import Object, Store

_METRICS = re.compile(r"(.*[/_])?metrics\.csv")
_CHECKPOINT = re.compile(r"epoch=(\d+)-step=(\d+).*\.ckpt")


def read(source: RunSource) -> RunRecords:
    """One run per metrics.csv; its id is the path without the file's name."""
    store = open_run_store(source)
    listing = store.list()
    rows = RunRows(source)
    for item in listing:
        if _METRICS.fullmatch(item.key):
            folder = item.key.rpartition("/")[0]
            saves = [other for other in listing if folder and other.key.startswith(f"{folder}/checkpoints/")]
            run_id = item.key.removesuffix("metrics.csv").rstrip("/_") or source.name
            rows.add(run_id, store.uri(item.key), _run, item, saves, store)
    return rows.records(f"{store.location} holds no metrics.csv")


def _lines(store: Store, key: str) -> list[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(store.read(key).decode("utf-8-sig", "replace")))
    if "step" not in (reader.fieldnames or ()):
        raise MalformedError(f"{store.uri(key)} has no column step; it is not a metrics.csv of Lightning's CSVLogger.")
    lines = []
    for number, row in enumerate(reader, start=2):
        with reading(f"{store.uri(key)}, line {number}", "fix or remove the line"):
            lines.append({name: float(text) for name, text in row.items() if name and text})
            int(lines[-1]["step"])
    return lines


def _run(item: Object, others: Sequence[Object], store: Store) -> Mapping[str, Any]:
    saves = {}
    for other in others:
        if found := _CHECKPOINT.fullmatch(other.key.rpartition("/")[2]):
            saves[int(found[1]), int(found[2])] = other
    written_at = utc(item.modified_at)
    saved_at = {epoch: utc(other.modified_at) for (epoch, _), other in saves.items()}
    times = sorted(at for at in (written_at, *saved_at.values()) if at)
    span = {"started_at": times[0], "last_seen_at": times[-1]}
    epochs: dict[int, dict[str, Any]] = {}
    scores, logged, closed = [], Counter[int](), Counter[int]()
    for line in _lines(store, item.key):
        epoch, step = line.get("epoch"), int(line["step"])
        at = saved_at.get(epoch_count(epoch), written_at) if epoch is not None else written_at
        if epoch is not None and epoch == epoch_count(epoch):
            epochs[int(epoch)] = {"epoch_index": int(epoch) + 1, "completed_at": at, "step": step}
            logged[int(epoch)] += 1
            closed[int(epoch)] += any(is_evaluation(name) or name.endswith("_epoch") for name in line)
        scores += [
            {"metric": name, "value": value, "step": step, "evaluated_at": at}
            for name, value in line.items()
            if is_evaluation(name)
        ]
    # A last one with fewer lines at its end than any before was cut short, or with fewer lines where none is at an end.
    *before, last = sorted(epochs) or [0]
    ends = closed if all(closed[epoch] for epoch in before) else logged
    least = min((ends[epoch] for epoch in before), default=int(last not in {epoch for epoch, _ in saves}))
    if ends[last] < least:
        epochs.pop(last, None)
    return {
        "run": [span | {"source_system": "lightning"}],
        "attempt": [span],
        "epoch": epochs.values(),
        "checkpoint": [
            {"checkpoint_id": other.key, "step": step, "uri": store.uri(other.key), "bytes": other.size}
            | {"durable_at": utc(other.modified_at), "is_resumable": True, "is_complete": other.size > 0}
            for (_, step), other in sorted(saves.items())
        ],
        "evaluation": scores,
    }
