"""Checkpoint folders, on disk or in S3, as evidence of saves (facts training-runs 1.9, 1.10, 1.12).

A save is durable by the marker its framework writes last, never by its shards: the time S3 gives a multipart shard is
when its upload began. A listing knows sizes and times; it knows no machine, no epoch and nothing already rotated away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipelines.base.errors import UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.checkpoint_marker import Folder, Verdict, is_async, judged
from pipelines.ingest.runs.records import RunRecords, listed_state, open_run_store, records
from pipelines.warehouse.storage import Object, Store

state = listed_state

# What holds one save, outermost first in a path: a folder named for its step, or a file.
_FOLDER = re.compile(r"(?:checkpoint|step|iter|global_step)[-_]?(\d+)|(?:.*[-_])?step[=_-]?(\d+)|.*step=(\d+).*")
_FILE = re.compile(r".*step=(\d+).*\.ckpt")
_SHARD = re.compile(r"\.metadata|__\d+_\d+\.distcp")
_PLACE = "{run_id}"
# Beside the saves of a run, not in one.
_TRACKERS = ("latest", "latest_checkpointed_iteration.txt")


@dataclass(frozen=True)
class _Save:
    """One folder or file that holds a save."""

    key: str
    step: int | None
    objects: tuple[Object, ...]

    @property
    def run_folder(self) -> str:
        return self.key.rpartition("/")[0]


def read(source: RunSource) -> RunRecords:
    """One run per folder of saves, named by `run_id` of the source, else by the folder; at the root by the source."""
    store = open_run_store(source)
    listing = store.list()
    naming = _naming(source)
    runs: dict[str, list[_Save]] = {}
    warnings: list[str] = []
    for save in _saves(listing):
        run_id = naming(save.run_folder)
        if run_id is None:
            warnings.append(f"{store.uri(save.key)} is at no place that run_id {source.run_id!r} names; passed over.")
        else:
            runs.setdefault(run_id, []).append(save)
    besides = {item.key: item for item in listing}
    rows: dict[str, list[dict[str, Any]]] = {}
    for run_id, saves in sorted(runs.items()):
        for table, found in _run(run_id, saves, besides, store, warnings).items():
            rows.setdefault(table, []).extend(found)
    if not runs:
        warnings.append(f"{store.location} holds no checkpoint: no run is recorded there yet.")
    # The folder's name is the run's, so whoever else tells of that run tells of the same.
    return records(source, rows, warnings, runs)


def _naming(source: RunSource) -> Callable[[str], str | None]:
    if source.run_id is None:
        return lambda folder: folder or source.name
    if _PLACE not in source.run_id:
        return lambda folder: source.run_id
    if source.run_id.count(_PLACE) > 1:
        raise UsageError(f"[[runs]] {source.name}: run_id {source.run_id!r} names {_PLACE} twice; name it once.")
    parts = (re.escape(part).replace(r"\*", "[^/]*") for part in source.run_id.strip("/").split(_PLACE))
    pattern = re.compile("([^/]+)".join(parts))

    def named(folder: str) -> str | None:
        found = pattern.fullmatch(folder)
        return found[1] if found else None

    return named


def _saves(listing: Sequence[Object]) -> Iterator[_Save]:
    """Every folder or file that holds a save, with all objects of it."""
    held: dict[tuple[str, int | None], list[Object]] = {}
    distributed = {item.key.rpartition("/")[0] for item in listing if _SHARD.fullmatch(item.key.rpartition("/")[2])}
    for item in listing:
        if place := _place(item.key, distributed):
            held.setdefault(place, []).append(item)
    for (key, step), objects in sorted(held.items(), key=lambda found: (found[0][1] or 0, found[0][0])):
        if not key.endswith("-unfinished"):
            yield _Save(key, step, tuple(objects))


def _place(key: str, distributed: set[str]) -> tuple[str, int | None] | None:
    parts = key.split("/")
    for depth, part in enumerate(parts, start=1):
        path = "/".join(parts[:depth])
        is_file = depth == len(parts)
        if found := (_FILE if is_file else _FOLDER).fullmatch(part):
            return path, int(next(number for number in found.groups() if number))
        if not is_file and path in distributed:
            numbers = re.findall(r"\d+", part)
            return path, int(numbers[-1]) if numbers else None
    return None


def _run(
    run_id: str, saves: list[_Save], besides: Mapping[str, Object], store: Store, warnings: list[str]
) -> dict[str, list[dict[str, Any]]]:
    attempt = {"run_id": run_id, "attempt_no": 1}
    told: dict[str, str] = {}
    for folder in {save.run_folder for save in saves}:
        for name in _TRACKERS:
            if (key := f"{folder}/{name}".lstrip("/")) in besides:
                told[key] = store.read(key).decode("utf-8", "replace").strip()
    folders = [Folder(save.key, save.step, save.objects, besides, told) for save in saves]
    verdicts = [judged(folder, store) for folder in folders]
    furthest = max((verdict.planned_steps or 0 for verdict in verdicts), default=0)
    found = []
    for number, (save, verdict) in enumerate(zip(saves, verdicts, strict=True)):
        following = verdicts[number + 1] if number + 1 < len(saves) else None
        if verdict.is_dummy(furthest):
            warnings.append(f"{store.uri(save.key)} is a dummy of a Neuron precompile; it is not counted as a save.")
            continue
        if verdict.doubt:
            warnings.append(f"{store.uri(save.key)} {verdict.doubt}")
        found.append(attempt | _checkpoint(save, verdict, following, store, warnings))
    times = [at for save in saves for at in (_naive(item.modified_at) for item in save.objects)]
    span = {"run_id": run_id, "started_at": min(times), "last_seen_at": max(times)}
    return {
        "run": [span | {"source_system": "checkpoints"}],
        "attempt": [span | attempt],
        "checkpoint": found,
    }


def _checkpoint(
    save: _Save, verdict: Verdict, following: Verdict | None, store: Store, warnings: list[str]
) -> dict[str, Any]:
    last_at = max(item.modified_at for item in save.objects)
    durable_at = verdict.marked_at or last_at
    if verdict.saving_at and verdict.marked_at and is_async(verdict, following):
        durable_at = verdict.shards_at
        late = round((verdict.marked_at - durable_at).total_seconds())
        warnings.append(
            f"{store.uri(save.key)} was saved asynchronously: `done` came {late} s after its last shard, "
            "with the next save; its last shard dates it."
        )
    return {
        "checkpoint_id": save.key,
        "step": save.step,
        "uri": store.uri(save.key),
        "save_started_at": _naive(verdict.saving_at) if verdict.saving_at else None,
        "durable_at": _naive(durable_at),
        "bytes": sum(item.size for item in save.objects),
        "is_resumable": verdict.is_resumable,
        "is_complete": verdict.is_complete,
    }


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)
