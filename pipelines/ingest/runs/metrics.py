"""Attempts, epochs and evaluations of a run from its log of metrics, and its description from its parameters.

Trackers keep one start and one end a run; a killed and resumed run shows only in its points, where the step goes back
or a long pause begins (facts training-runs 1.1).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from pipelines.ingest.runs.event import TARGET, any_machine
from pipelines.ingest.runs.records import Row, epoch_count, is_evaluation

# Why the last attempt of a run ended, by the run's status, where its tracker has no other reason.
REASONS = {"completed": "completed", "failed": "sw_error", "killed": "user_stop", None: None}
# Point of a history: when, at which step (if known), and the values then.
Point = tuple[datetime, int | None, Mapping[str, float]]

# A pause that ends an attempt: this many times the usual pause between points, and at least this long.
_PAUSES, _SILENCE = 20, timedelta(minutes=15)
# More machines than any one run has, and more stays on them.
_MOST_MACHINES, _MOST_STAYS = 20_000, 1_000_000
_TOKENS = ("tokens_seen", "num_input_tokens_seen", "train/num_input_tokens_seen", "consumed_tokens")
_EPOCHS = ("epoch", "train/epoch", "trainer/epoch")
_NAMES = {
    "model": ("model", "model_name", "base_model", "model_name_or_path", "_name_or_path"),
    "dataset": ("dataset", "dataset_name", "dataset_id"),
    "precision": ("precision", "dtype", "mixed_precision"),
    "base_checkpoint_id": ("base_checkpoint_id", "resume_from_checkpoint"),
    "code_revision": ("code_revision", "mlflow.source.git.commit", "git_commit"),
    **{
        name: (name,)
        for name in ("purpose", "team", "owner", "experiment", "compile_run_id", "workload_id", "target_metric",
                     "target_direction")
    },
}  # fmt: skip
_NUMBERS = {
    **{name: (name,) for name in ("dataset_tokens", "dataset_samples", "target_value")},
    "seq_len": ("seq_len", "sequence_length", "max_seq_length", "block_size"),
    "global_batch_samples": ("global_batch_samples", "global_batch_size"),
}
_WHOLE = ("seq_len", "global_batch_samples")


def described(parameters: Mapping[str, Any], run_id: str, warnings: list[str]) -> tuple[Row, list[Row]]:
    """A run's description by its parameters and tags, and the billed resources in `aws.resource_ids` (with commas)."""
    facts: Row = {}

    def first(keys: Sequence[str]) -> Any:
        return next((parameters[key] for key in keys if parameters.get(key) not in (None, "")), None)

    for field, keys in _NAMES.items():
        facts[field] = None if (text := first(keys)) is None else str(text)
    for field, keys in _NUMBERS.items():
        facts[field] = _number(first(keys), field, run_id, warnings, whole=field in _WHOLE)
    if any(facts[part] is None for part in TARGET):
        if any(facts[part] is not None for part in TARGET):
            warnings.append(
                f"Run {run_id}: a target needs {', '.join(TARGET)} together; it is ignored. Log the missing ones."
            )
        facts |= dict.fromkeys(TARGET)
    ids = [name.strip() for name in str(parameters.get("aws.resource_ids") or "").split(",") if name.strip()]
    names = {"account_id": "aws.account_id", "region_id": "aws.region", "instance_type": "aws.instance_type"}
    place = {name: parameters.get(key) or None for name, key in names.items()} | {"evidence": "imds"}
    if not ids and all(place.values()):
        # Without resource ids the instance type is the last resort (facts 1.13).
        text = parameters.get("aws.instance_count") or None
        count = _number(text, "aws.instance_count", run_id, warnings, whole=True) or 1
        if not 0 < count <= _MOST_MACHINES:
            warnings.append(
                f"Run {run_id}: aws.instance_count is {count}, which no run has; it is read as 1. Log the number of "
                "machines."
            )
            count = 1
        ids = [any_machine(str(place["instance_type"]), rank) for rank in range(int(count))]
        place["evidence"] = "type_match"
    return facts, [{"resource_id": name, "node_rank": rank, **place} for rank, name in enumerate(ids)]


def _number(text: Any, field: str, run_id: str, warnings: list[str], *, whole: bool) -> float | int | None:
    if text is None:
        return None
    try:
        number = float(text)
        if not math.isfinite(number) or (whole and number != int(number)):
            raise ValueError
    except (TypeError, ValueError):
        warnings.append(
            f"Run {run_id}: {field} is {str(text)[:40]!r}, not a number; it is read as unknown. Correct it."
        )
        return None
    return int(number) if whole else number


def _position(values: Mapping[str, float]) -> float | None:
    """The epochs done at a point, or the number of the epoch it is in."""
    return next((values[key] for key in _EPOCHS if math.isfinite(values.get(key, math.nan))), None)


def attempts_of(
    tries: Iterable[tuple[datetime | None, datetime | None, str | None]], last_at: datetime | None = None
) -> list[Row]:
    """Attempts numbered in order, each by its start, end and end's reason; an open one was seen at `last_at`."""
    return [
        {"attempt_no": number, "started_at": begun, "ended_at": ended, "end_reason": reason}
        | {"last_seen_at": ended or last_at or begun}
        for number, (begun, ended, reason) in enumerate(tries, start=1)
    ]


class History:
    """The points of a run, in the order of their clock: steps may all read 0, or come twice after a resume."""

    def __init__(self, points: Sequence[Point]):
        self._points = sorted(points, key=lambda point: point[0])
        # One piece per attempt: a new one begins where the step goes back, or after a long pause.
        bounds = [0, *self._breaks(), len(self._points)]
        self._pieces = [self._points[low:high] for low, high in pairwise(bounds)]

    @property
    def last_at(self) -> datetime | None:
        return self._points[-1][0] if self._points else None

    def tables(
        self, started_at: datetime, ended_at: datetime | None, resources: Sequence[Row], reason: str | None = None
    ) -> dict[str, list[Row]]:
        """Attempts, each on all resources, epochs and evaluations. ValueError for more stays than any run has.

        The first attempt starts with the run; each ends at its last point, the last with the run where that has an end
        and for `reason`.
        """
        if len(self._pieces) * len(resources) > _MOST_STAYS:
            raise ValueError(f"{len(self._pieces):,} attempts on {len(resources):,} machines are more than any run has")
        begins = [started_at, *(points[0][0] for points in self._pieces[1:])]
        ends = [points[-1][0] if points else started_at for points in self._pieces]
        attempts = attempts_of((begun, ended, "unknown") for begun, ended in zip(begins, ends, strict=True))
        last = attempts[-1]["last_seen_at"]
        attempts[-1] |= {"ended_at": ended_at, "end_reason": reason, "last_seen_at": max(last, ended_at or last)}
        stays = [
            {"attempt_no": attempt["attempt_no"], "joined_at": attempt["started_at"], "left_at": attempt["ended_at"]}
            | resource
            for attempt in attempts
            for resource in resources
        ]
        evaluations = [
            {"attempt_no": number, "metric": key, "value": value, "step": step, "evaluated_at": at}
            for number, points in enumerate(self._pieces, start=1)
            for at, step, values in points
            for key, value in values.items()
            if is_evaluation(key)
        ]
        epochs = self._epochs(reason)
        if min((row["epoch_index"] for row in epochs), default=1) > 1:
            # A trainer that continues from a checkpoint counts the tokens before it too.
            epochs = [row | {"tokens_seen": None} for row in epochs]
        return {"attempt": attempts, "resource": stays, "epoch": epochs, "evaluation": evaluations}

    def _epochs(self, reason: str | None) -> list[Row]:
        """Whole epochs, each completed at the first point of an attempt that is past its end."""
        if self._has_epoch_numbers():
            return self._numbered_epochs(reason)
        found, furthest = [], self._epochs_before()
        last = next((point for point in reversed(self._points) if _position(point[2]) is not None), None)
        for number, points in enumerate(self._pieces, start=1):
            done = None
            for at, step, values in points:
                if (position := _position(values)) is None:
                    continue
                whole = epoch_count(position, is_end=reason == "completed" and (at, step, values) == last)
                tokens = next((values[key] for key in _TOKENS if key in values), None)
                row = {"attempt_no": number, "completed_at": at, "step": step, "tokens_seen": tokens}
                # A resumed attempt continues from its first point, which may be past an epoch that none had completed.
                done = min(whole, furthest) if done is None else done
                found += [row | {"epoch_index": n} for n in range(done + 1, whole + 1)]
                done, furthest = max(done, whole), max(furthest, whole)
        return found

    def _has_epoch_numbers(self) -> bool:
        """Whether points have the number of their epoch, as of Lightning, not how many are done.

        It is whole at several steps that log one loss, or 0 where a loss is logged: no part of an epoch is done there.
        """
        numbers, losses = {}, []
        for at, step, values in self._points:
            if (position := _position(values)) is not None:
                numbers[at, step] = position
            losses += [(at, step, name) for name in values if "loss" in name and not is_evaluation(name)]
        if any(not number.is_integer() for number in numbers.values()):
            return False
        if len({*numbers.values()}) < 2:
            # A Trainer may round the part of its only epoch to 0; Lightning is known by its own names.
            names = {name for _, _, values in self._points for name in values}
            return bool(numbers) and any(name.endswith(("_epoch", "trainer/global_step")) for name in names)
        steps: dict[tuple[float, str], set[int | None]] = {}
        for at, step, name in losses:
            if (at, step) in numbers:
                steps.setdefault((numbers[at, step], name), set()).add(step)
        return any(number == 0 or len(found) > 1 for (number, _), found in steps.items())

    def _numbered_epochs(self, reason: str | None) -> list[Row]:
        """Epochs by number, from 0 or 1, each completed at its last point; the last one if it ends as the others.

        Where no evaluation or metric of an epoch shows how they end, it must be the last of a completed run.
        """
        found: list[Row] = []
        base = min(int(at) for _, _, values in self._points if (at := _position(values)) is not None) > 0
        for number, points in enumerate(self._pieces, start=1):
            epochs: dict[int, tuple[Row, int]] = {}
            now = None
            for (at, step), group in groupby(points, key=lambda point: point[:2]):
                values = {name: value for _, _, own in group for name, value in own.items()}
                if (position := _position(values)) is not None:
                    now = epoch_count(position) - base + 1
                if now is None:
                    continue
                tokens = next((values[key] for key in _TOKENS if key in values), None)
                row = {"attempt_no": number, "completed_at": at, "step": step, "tokens_seen": tokens}
                ends = sum(is_evaluation(name) or name.endswith("_epoch") for name in values)
                epochs[now] = row | {"epoch_index": now}, epochs.get(now, (row, 0))[1] + ends
            *before, last = epochs.values() or [({}, 0)]
            least = min((ends for _, ends in before), default=0)
            is_whole = last[1] >= least if least else number == len(self._pieces) and reason == "completed"
            found += [row for row, _ in before] + [last[0]] * (is_whole and bool(epochs))
        return found

    def _epochs_before(self) -> int:
        """Whole epochs done before the run, which began as far before its first position as others lie apart."""
        positions = [at for _, _, values in self._points if (at := _position(values)) is not None]
        apart = [after - before for before, after in pairwise(positions) if after > before]
        return epoch_count(max(positions[0] - median(apart), 0)) if apart else 0

    def _breaks(self) -> list[int]:
        """Where in the points a new attempt begins."""
        moments = [at for at, _, _ in self._points]
        pauses = [(after - before) for before, after in pairwise(moments) if after > before]
        usual = timedelta(seconds=median(pause.total_seconds() for pause in pauses)) if pauses else timedelta()
        silence = max(_SILENCE, _PAUSES * usual)
        found, furthest = [], -1
        for number, (at, step, values) in enumerate(self._points):
            went_back = step is not None and step < furthest and number > 0 and self._was_further(number, step, values)
            if number and (went_back or at - moments[number - 1] > silence):
                found.append(number)
                furthest = -1
            furthest = max(furthest, step if step is not None else -1)
        return found

    def _was_further(self, number: int, step: int, values: Mapping[str, float]) -> bool:
        """Whether one of the point's own metrics had a later step before: other metrics may lag by design."""
        return any(
            before_step is not None and before_step > step and key in before
            for key in values
            for _, before_step, before in reversed(self._points[max(0, number - 200) : number])
        )
