"""Checkpoint folders, on disk or in S3, as evidence of saves (facts training-runs 1.9, 1.10, 1.12).

A save is durable by the marker its framework writes last, never by its shards: the time S3 gives a multipart shard is
when its upload began. A listing has sizes and times, but no machines, no epochs and no rotated saves.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from pipelines.base.errors import UsageError
from pipelines.base.parse import MALFORMED, parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import Row, RunRecords, RunRows, Tables, open_run_store, utc
from pipelines.warehouse.storage import Object, Store

# The outermost part of a path that holds one save: a folder named after its step, or a file.
_FOLDER = re.compile(r"(?:checkpoint|step|iter|global_step)[-_]?(\d+)|(?:.*[-_])?step[=_-]?(\d+)|.*step=(\d+).*")
_FILE = re.compile(r".*step=(\d+).*\.ckpt")
_SHARD = re.compile(r"\.metadata|__\d+_\d+\.distcp")
_RUN_ID = "{run_id}"
# A trial of a Neuron precompile runs at most this far (facts training-runs 1.9).
_TRIAL_STEPS = 10
# `done` of an asynchronous save is written as the next one begins, within the precision of a listing.
_AT_ONCE = timedelta(seconds=5)
_MULTIPART = re.compile(r'"?[0-9a-f]{32}-\d+"?')
_OPTIMIZER = ("optimizer", "global_step", "rng_state", "scheduler")
Read = Callable[[str], bytes]


@dataclass(frozen=True)
class Folder:
    """A folder or file that holds a save: its objects, and all objects of the listing by key."""

    key: str
    step: int | None
    objects: tuple[Object, ...]
    listing: Mapping[str, Object]

    @property
    def run_folder(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def newest_at(self) -> datetime:
        """When the last of its objects was written."""
        return max(item.modified_at for item in self.objects)

    @property
    def size(self) -> int:
        return sum(item.size for item in self.objects)

    def inner(self, name: str) -> Object | None:
        return next((item for item in self.objects if item.key == f"{self.key}/{name}"), None)


@dataclass(frozen=True)
class Verdict:
    """Whether a save is complete, since when, and by which file."""

    is_complete: bool
    # When the last shard was written; of a multipart upload a listing shows when it began.
    shards_at: datetime
    is_resumable: bool = True
    # When the marker was written, never before the shards; None without a marker.
    marked_at: datetime | None = None
    # When the save began, where a file records it.
    saving_at: datetime | None = None
    planned_steps: int | None = None
    warning: str | None = None
    byte_count: int = 0


def read(source: RunSource) -> RunRecords:
    """One run per folder of saves, named by `run_id` of the source, else by the folder; at the root by the source."""
    store = open_run_store(source)
    naming = _naming(source)
    runs: dict[str, list[Folder]] = {}
    rows = RunRows(source)
    for save in _saves(store.list()):
        run_id = naming(save.run_folder)
        if run_id is None:
            rows.warnings.append(
                f"{store.uri(save.key)} does not match run_id {source.run_id!r} and is skipped; "
                "change run_id if it is a save of a run."
            )
        else:
            runs.setdefault(run_id, []).append(save)
    for run_id, saves in sorted(runs.items()):
        rows.add(run_id, store.uri(run_id), _run, saves, store, rows.warnings)
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
        # neuron_parallel_compile leaves empty saves, and those of a trial's few steps of a longer run.
        is_trial = verdict.planned_steps is not None and verdict.planned_steps <= _TRIAL_STEPS < furthest
        if is_trial or (verdict.is_complete and verdict.byte_count == 0):
            warnings.append(
                f"{store.uri(save.key)} is a dummy of a Neuron precompile; it is not counted as a save. Delete it if "
                "nothing needs it."
            )
            continue
        if verdict.warning:
            warnings.append(f"{store.uri(save.key)} {verdict.warning}")
        found.append(_checkpoint(save, verdict, following, store, warnings))
    times = [item.modified_at for save in saves for item in save.objects]
    span = {"started_at": utc(min(times)), "last_seen_at": utc(max(times))}
    return {"run": [span | {"source_system": "checkpoints"}], "attempt": [span], "checkpoint": found}


def _checkpoint(save: Folder, verdict: Verdict, following: Verdict | None, store: Store, warnings: list[str]) -> Row:
    durable_at = verdict.marked_at or save.newest_at
    next_at = following.saving_at if following else None
    # NxD's `done` of an asynchronous save waits for the next save to begin.
    if verdict.saving_at and verdict.marked_at and next_at and verdict.marked_at >= next_at - _AT_ONCE:
        durable_at = verdict.shards_at
        late = round((verdict.marked_at - durable_at).total_seconds())
        warnings.append(
            f"{store.uri(save.key)} was saved asynchronously: `done` came {late} s after its last shard, "
            "with the next save. Its last shard dates it; check that its files are complete."
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


def judged(folder: Folder, read: Read) -> Verdict:
    """The verdict on one save, by the rule of the framework that wrote it; `read` gives the content of a key."""
    name = folder.key.rpartition("/")[2]
    if folder.inner("trainer_state.json"):
        return _by_trainer_state(folder, read)
    if folder.inner("done") or folder.inner("checkpoint"):
        return _by_file(folder, "done")
    for prefix, tracker in (("iter_", "latest_checkpointed_iteration.txt"), ("global_step", "latest")):
        if name.startswith(prefix) and (found := folder.listing.get(f"{folder.run_folder}/{tracker}".lstrip("/"))):
            return _by_tracker(folder, found, read)
    if not folder.inner(".metadata"):
        if folder.inner("model.safetensors.index.json"):
            return replace(_by_file(folder, "model.safetensors.index.json"), is_resumable=False)
        if name.startswith("checkpoint-"):
            return _by_file(folder, "trainer_state.json")
        if "step=" in name:
            return _by_absence(folder)
    return _by_file(folder, ".metadata")


def _by_file(folder: Folder, marker: str) -> Verdict:
    """A file inside, written last."""
    mark, begun = folder.inner(marker), folder.inner("checkpoint") if marker == "done" else None
    shards = [item for item in folder.objects if item not in (mark, begun)]
    shards_at = max(item.modified_at for item in shards or folder.objects)
    return Verdict(
        is_complete=mark is not None,
        shards_at=shards_at,
        marked_at=max(mark.modified_at, shards_at) if mark else None,
        saving_at=begun.modified_at if begun else None,
        warning=None if mark else f"has no `{marker}`: the save is incomplete and protects nothing; delete it.",
        byte_count=sum(item.size for item in shards),
    )


def _by_trainer_state(folder: Folder, read: Read) -> Verdict:
    try:
        planned = int(parse_json(read(f"{folder.key}/trainer_state.json"))["max_steps"])
    except MALFORMED:
        # Cut short or of another kind: no plan to compare, but the marker is there.
        planned = None
    resumes = any(item.key.removeprefix(f"{folder.key}/").startswith(_OPTIMIZER) for item in folder.objects)
    return replace(_by_file(folder, "trainer_state.json"), is_resumable=resumes, planned_steps=planned)


def _by_tracker(folder: Folder, tracker: Object, read: Read) -> Verdict:
    """A file next to all saves that names the newest complete one; it is overwritten, so it dates only that one."""
    name = tracker.key.rpartition("/")[2]
    latest = read(tracker.key).decode("utf-8", "replace").strip()
    is_number = latest.isdigit() and int(latest) == folder.step
    is_latest = latest == folder.key.rpartition("/")[2] if name == "latest" else is_number
    numbers = re.findall(r"\d+", latest)
    is_before = bool(numbers) and folder.step is not None and folder.step <= int(numbers[-1])
    is_complete = is_latest or is_before
    return Verdict(
        is_complete=is_complete,
        shards_at=folder.newest_at,
        marked_at=max(tracker.modified_at, folder.newest_at) if is_latest else None,
        warning=None
        if is_complete
        else f"is later than `{name}` ({latest[:40]!r}): the save is incomplete; delete it.",
        byte_count=folder.size,
    )


def _by_absence(folder: Folder) -> Verdict:
    """NeMo marks incomplete saves; the others are dated by their newest object, too early if it came in parts."""
    marks = tuple(f"{name}-unfinished" for name in (folder.key, folder.key.removesuffix(".ckpt")))
    below = tuple(f"{mark}/" for mark in marks)
    is_complete = not any(key in marks or key.startswith(below) for key in folder.listing)
    warning = None
    if not is_complete:
        warning = "has an `-unfinished` marker next to it: the save is incomplete; delete it if its run has ended."
    elif any(_MULTIPART.fullmatch(item.etag) for item in folder.objects):
        warning = (
            "was uploaded in parts and has no marker: its time is when the upload began, so it is too early; write a "
            "marker after each upload."
        )
    return Verdict(is_complete, folder.newest_at, warning=warning, byte_count=folder.size)
