"""Checkpoint folders, on disk or in S3, as evidence of saves (facts training-runs 1.9, 1.10, 1.12).

A save is durable by the marker its framework writes last, never by its shards: the time S3 gives a multipart shard is
when its upload began. A listing has sizes and times, but no machines, no epochs and no rotated saves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from pipelines.base.errors import UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.checkpoint_marker import Folder, Verdict, judged
from pipelines.ingest.runs.clean import utc
from pipelines.ingest.runs.records import Row, RunRecords, RunRows, Tables, listed_state, open_run_store
from pipelines.warehouse.storage import Object, Store

state = listed_state

# The outermost part of a path that holds one save: a folder named after its step, or a file.
_FOLDER = re.compile(r"(?:checkpoint|step|iter|global_step)[-_]?(\d+)|(?:.*[-_])?step[=_-]?(\d+)|.*step=(\d+).*")
_FILE = re.compile(r".*step=(\d+).*\.ckpt")
_SHARD = re.compile(r"\.metadata|__\d+_\d+\.distcp")
_RUN_ID = "{run_id}"


def read(source: RunSource) -> RunRecords:
    """One run per folder of saves, named by `run_id` of the source, else by the folder; at the root by the source."""
    store = open_run_store(source)
    naming = _naming(source)
    runs: dict[str, list[Folder]] = {}
    rows = RunRows(source)
    for save in _saves(store.list()):
        run_id = naming(save.run_folder)
        if run_id is None:
            rows.warnings.append(f"{store.uri(save.key)} does not match run_id {source.run_id!r} and is skipped.")
        else:
            runs.setdefault(run_id, []).append(save)
    for run_id, saves in sorted(runs.items()):
        rows.add(run_id, store.uri(run_id), lambda saves=saves: _run(saves, store, rows.warnings))
    # A folder is named after its run, so another source with that run id records the same run.
    rows.declared |= set(runs)
    return rows.records(f"{store.location} holds no checkpoint")


def _naming(source: RunSource) -> Callable[[str], str | None]:
    run_id = source.run_id
    if run_id is None:
        return lambda folder: folder or source.name
    if _RUN_ID not in run_id:
        return lambda folder: run_id
    if run_id.count(_RUN_ID) > 1:
        raise UsageError(f"[[runs]] {source.name}: run_id {run_id!r} contains {_RUN_ID} twice; write it once.")
    parts = (re.escape(part).replace(r"\*", "[^/]*") for part in run_id.strip("/").split(_RUN_ID))
    pattern = re.compile("([^/]+)".join(parts))
    return lambda folder: found[1] if (found := pattern.fullmatch(folder)) else None


def _saves(listing: Sequence[Object]) -> Iterator[Folder]:
    """Every folder or file that holds a save, with all objects of it, by step."""
    held: dict[tuple[str, int | None], list[Object]] = {}
    distributed = {item.key.rpartition("/")[0] for item in listing if _SHARD.fullmatch(item.key.rpartition("/")[2])}
    for item in listing:
        if found := _save_of(item.key, distributed):
            held.setdefault(found, []).append(item)
    by_key = {item.key: item for item in listing}
    for (key, step), objects in sorted(held.items(), key=lambda found: (found[0][1] or 0, found[0][0])):
        if not key.endswith("-unfinished"):
            yield Folder(key, step, tuple(objects), by_key)


def _save_of(key: str, distributed: set[str]) -> tuple[str, int | None] | None:
    """The path and step of the save an object belongs to."""
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


def _run(saves: list[Folder], store: Store, warnings: list[str]) -> Tables:
    # Of all saves of a run one tracker file is read.
    content = cache(store.read)
    verdicts = [judged(save, content) for save in saves]
    furthest = max((verdict.planned_steps or 0 for verdict in verdicts), default=0)
    found = []
    for save, verdict, following in zip(saves, verdicts, [*verdicts[1:], None], strict=True):
        if verdict.is_dummy(furthest):
            warnings.append(f"{store.uri(save.key)} is a dummy of a Neuron precompile; it is not counted as a save.")
            continue
        if verdict.warning:
            warnings.append(f"{store.uri(save.key)} {verdict.warning}")
        found.append(_checkpoint(save, verdict, following, store, warnings))
    times = [item.modified_at for save in saves for item in save.objects]
    span = {"started_at": utc(min(times)), "last_seen_at": utc(max(times))}
    return {"run": [span | {"source_system": "checkpoints"}], "attempt": [span], "checkpoint": found}


def _checkpoint(save: Folder, verdict: Verdict, following: Verdict | None, store: Store, warnings: list[str]) -> Row:
    durable_at = verdict.marked_at or save.newest_at
    if verdict.saving_at and verdict.marked_at and verdict.is_async(following):
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
        "save_started_at": utc(verdict.saving_at),
        "durable_at": utc(durable_at),
        "bytes": save.size,
        "is_resumable": verdict.is_resumable,
        "is_complete": verdict.is_complete,
    }
