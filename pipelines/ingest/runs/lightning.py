"""Lightning's `metrics.csv` below a folder, one run a file, with the checkpoints beside it (facts training-runs 1.10).

The csv has steps and scores but no time, and no machine. The file's own time ends the run; epochs and scores are dated
by it too, unless a checkpoint of that epoch was written before. Lightning counts epochs from 0, we from 1.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import epoch_count, telling
from pipelines.ingest.runs.records import RunRecords, listed_state, open_run_store, records
from pipelines.warehouse.storage import Object, Store

state = listed_state

_METRICS = re.compile(r"(.*[/_])?metrics\.csv")
_CHECKPOINT = re.compile(r"epoch=(\d+)-step=(\d+).*\.ckpt")
_EVALUATED = ("val", "valid", "validation", "test", "eval")


def read(source: RunSource) -> RunRecords:
    """One run per metrics.csv; its id is the path without the file's name."""
    store = open_run_store(source)
    listing = store.list()
    rows: dict[str, list[dict[str, Any]]] = {}
    found = [item for item in listing if _METRICS.fullmatch(item.key)]
    for item in found:
        run_id = item.key.removesuffix("metrics.csv").rstrip("/_") or source.name
        folder = item.key.rpartition("/")[0]
        beside = [other for other in listing if folder and other.key.startswith(f"{folder}/checkpoints/")]
        with telling(store.uri(item.key)):
            for table, told in _run(run_id, item, _lines(store, item.key), beside, store).items():
                rows.setdefault(table, []).extend(told)
    warnings = [] if found else [f"{store.location} holds no metrics.csv: no run is recorded there yet."]
    return records(source, rows, warnings)


def _lines(store: Store, key: str) -> list[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(store.read(key).decode("utf-8-sig", "replace")))
    if "step" not in (reader.fieldnames or ()):
        raise SourceError(f"{store.uri(key)} has no column step; it is no metrics.csv of Lightning's CSVLogger.")
    lines = []
    for number, row in enumerate(reader, start=2):
        try:
            lines.append({name: float(text) for name, text in row.items() if name and text})
            int(lines[-1]["step"])
        except (TypeError, ValueError, OverflowError):
            raise SourceError(f"{store.uri(key)}, line {number} has a value that is no number; mend it.") from None
        except KeyError:
            raise SourceError(f"{store.uri(key)}, line {number} has no step; mend or remove it.") from None
    return lines


def _run(
    run_id: str, item: Object, lines: Sequence[Mapping[str, float]], beside: Sequence[Object], store: Store
) -> dict[str, list[dict[str, Any]]]:
    saves = {}
    for other in beside:
        if told := _CHECKPOINT.fullmatch(other.key.rpartition("/")[2]):
            saves[int(told[1]), int(told[2])] = other
    written_at = _naive(item)
    saved_at = {epoch: _naive(other) for (epoch, _), other in saves.items()}
    started_at = min([written_at, *saved_at.values()])
    attempt = {"run_id": run_id, "attempt_no": 1}
    span = {"run_id": run_id, "started_at": started_at, "last_seen_at": max([written_at, *saved_at.values()])}
    epochs: dict[int, dict[str, Any]] = {}
    scores = []
    for line in lines:
        epoch, step = line.get("epoch"), int(line["step"])
        at = saved_at.get(epoch_count(epoch), written_at) if epoch is not None else written_at
        if epoch is not None and epoch == epoch_count(epoch):
            epochs[int(epoch)] = attempt | {"epoch_index": int(epoch) + 1, "completed_at": at, "step": step}
        for name, value in line.items():
            if name.split("_")[0].split("/")[0] in _EVALUATED:
                scores.append(attempt | {"metric": name, "value": value, "step": step, "evaluated_at": at})
    return {
        "run": [span | {"source_system": "lightning"}],
        "attempt": [span | attempt],
        "epoch": list(epochs.values()),
        "checkpoint": [
            attempt
            | {
                "checkpoint_id": other.key,
                "step": step,
                "uri": store.uri(other.key),
                "durable_at": _naive(other),
                "bytes": other.size,
                "is_resumable": True,
                "is_complete": other.size > 0,
            }
            for (_, step), other in sorted(saves.items())
        ],
        "evaluation": scores,
    }


def _naive(item: Object) -> datetime:
    return item.modified_at.astimezone(UTC).replace(tzinfo=None)
