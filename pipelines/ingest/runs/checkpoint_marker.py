"""What each framework leaves behind when a save is whole, and when that was (facts training-runs 1.9, 1.10, 1.12)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.base.parse import parse_json
from pipelines.ingest.runs.clean import MALFORMED
from pipelines.warehouse.storage import Object, Store

# A trial of a Neuron precompile goes so far (facts training-runs 1.9).
_TRIAL_STEPS = 10
# `done` of an asynchronous save is written as the next one begins, within what a listing can tell apart.
_AT_ONCE = timedelta(seconds=5)
_MULTIPART = re.compile(r'"?[0-9a-f]{32}-\d+"?')
_OPTIMIZER = ("optimizer", "global_step", "rng_state", "scheduler")


@dataclass(frozen=True)
class Folder:
    """What may be a save: its objects, all objects of the listing, and what trackers beside it say."""

    key: str
    step: int | None
    objects: tuple[Object, ...]
    besides: Mapping[str, Object]
    told: Mapping[str, str]

    def inner(self, name: str) -> Object | None:
        """An object of the save by its name."""
        return next((item for item in self.objects if item.key == f"{self.key}/{name}"), None)

    def beside(self, name: str) -> str | None:
        """What a tracker file beside the save says."""
        return self.told.get(f"{self.key.rpartition('/')[0]}/{name}".lstrip("/"))

    def is_unfinished(self) -> bool:
        """Whether NeMo's marker says that the save is still being written."""
        stem = self.key.removesuffix(".ckpt")
        marks = tuple(f"{name}-unfinished" for name in (self.key, stem))
        return any(mark in self.besides for mark in marks) or any(
            key.startswith(f"{mark}/") for mark in marks for key in self.besides
        )


@dataclass(frozen=True)
class Verdict:
    """Whether a save is whole, since when, and by what."""

    is_complete: bool
    is_resumable: bool
    # When the last shard was written: what a listing says, so for a multipart upload when it began.
    shards_at: datetime
    # When the marker was written, never before the shards; None where no file marks this save.
    marked_at: datetime | None = None
    # When a save that says so began.
    saving_at: datetime | None = None
    planned_steps: int | None = None
    doubt: str | None = None
    step: int | None = None
    byte_count: int = 0

    def is_dummy(self, furthest: int) -> bool:
        """Whether it is what neuron_parallel_compile leaves: nothing in it, or a trial's few steps of a longer run."""
        is_trial = self.planned_steps is not None and self.planned_steps <= _TRIAL_STEPS < furthest
        return is_trial or (self.is_complete and self.byte_count == 0)


def is_async(verdict: Verdict, following: Verdict | None) -> bool:
    """Whether NxD's `done` waited for the next save to begin."""
    if following is None or following.saving_at is None or verdict.marked_at is None:
        return False
    return verdict.marked_at >= following.saving_at - _AT_ONCE


def judged(folder: Folder, store: Store) -> Verdict:
    """The verdict on one save, by the rule of the framework that wrote it."""
    name = folder.key.rpartition("/")[2]
    if folder.inner("trainer_state.json"):
        return _by_trainer_state(folder, store)
    if folder.inner("done") or folder.inner("checkpoint"):
        return _by_file(folder, "done", is_resumable=True)
    if name.startswith("iter_") and (told := folder.beside("latest_checkpointed_iteration.txt")) is not None:
        return _by_tracker(folder, told.isdigit() and int(told) == folder.step, "latest_checkpointed_iteration.txt")
    if name.startswith("global_step") and (told := folder.beside("latest")) is not None:
        return _by_tracker(folder, told == name, "latest")
    if folder.inner(".metadata"):
        return _by_file(folder, ".metadata", is_resumable=True)
    if folder.inner("model.safetensors.index.json"):
        return _by_file(folder, "model.safetensors.index.json", is_resumable=False)
    if name.startswith("checkpoint-"):
        return _by_file(folder, "trainer_state.json", is_resumable=True)
    if "step=" in name:
        return _by_absence(folder)
    return _by_file(folder, ".metadata", is_resumable=True)


def _by_file(folder: Folder, marker: str, *, is_resumable: bool, planned_steps: int | None = None) -> Verdict:
    """A file inside, written last."""
    mark, begun = folder.inner(marker), folder.inner("checkpoint") if marker == "done" else None
    shards = [item for item in folder.objects if item not in (mark, begun)]
    shards_at = max(item.modified_at for item in shards or folder.objects)
    return Verdict(
        is_complete=mark is not None,
        is_resumable=is_resumable,
        shards_at=shards_at,
        marked_at=max(mark.modified_at, shards_at) if mark else None,
        saving_at=begun.modified_at if begun else None,
        planned_steps=planned_steps,
        doubt=None if mark else f"has no `{marker}`: that save never became whole and protects nothing.",
        step=folder.step,
        byte_count=sum(item.size for item in shards),
    )


def _by_trainer_state(folder: Folder, store: Store) -> Verdict:
    try:
        planned = int(parse_json(store.read(f"{folder.key}/trainer_state.json"))["max_steps"])
    except MALFORMED:
        # Cut short or of another kind: no plan to compare, and the file is there all the same.
        planned = None
    names = [item.key.removeprefix(f"{folder.key}/") for item in folder.objects]
    resumes = any(name.startswith(_OPTIMIZER) for name in names)
    return _by_file(folder, "trainer_state.json", is_resumable=resumes, planned_steps=planned)


def _by_tracker(folder: Folder, is_latest: bool, tracker: str) -> Verdict:
    """A file beside all saves that names the newest whole one; it is overwritten, so it dates only that one."""
    shards_at = max(item.modified_at for item in folder.objects)
    told = folder.beside(tracker) or ""
    numbers = re.findall(r"\d+", told)
    reached = int(numbers[-1]) if numbers else None
    is_whole = is_latest or (reached is not None and folder.step is not None and folder.step <= reached)
    at = folder.besides[f"{folder.key.rpartition('/')[0]}/{tracker}".lstrip("/")].modified_at
    return Verdict(
        is_complete=is_whole,
        is_resumable=True,
        shards_at=shards_at,
        marked_at=max(at, shards_at) if is_latest else None,
        doubt=None if is_whole else f"is past what `{tracker}` names ({told[:40]!r}): that save is not whole.",
        step=folder.step,
        byte_count=sum(item.size for item in folder.objects),
    )


def _by_absence(folder: Folder) -> Verdict:
    """NeMo marks what is not whole; of the rest the newest object says when, too early if it came in parts."""
    newest = max(folder.objects, key=lambda item: item.modified_at)
    is_whole = not folder.is_unfinished()
    doubt = None
    if not is_whole:
        doubt = "has an `-unfinished` marker beside it: that save is not whole."
    elif any(_MULTIPART.fullmatch(item.etag) for item in folder.objects):
        doubt = "was uploaded in parts and has no marker: its time is when the upload began, so it is too early."
    return Verdict(
        is_complete=is_whole,
        is_resumable=True,
        shards_at=newest.modified_at,
        doubt=doubt,
        step=folder.step,
        byte_count=sum(item.size for item in folder.objects),
    )
