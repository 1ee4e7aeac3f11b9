"""One line of a run-event file: what it may say, and how it is refused when it says it wrongly."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipelines.errors import SourceError

# Field -> form, by event (design 2; facts training-runs 2). A form ending in "!" is required.
_RUN = {
    **dict.fromkeys(
        ("model", "dataset", "precision", "code_revision", "target_metric", "purpose", "experiment", "team", "owner"),
        "text",
    ),
    **dict.fromkeys(("dataset_tokens", "dataset_samples"), "amount"),
    **dict.fromkeys(("seq_len", "global_batch_samples"), "count"),
    "parent_run_id": "text",
    "target_value": "number",
    "target_direction": "text",
}
_PROGRESS = {"step": "count", "tokens_seen": "amount", "samples_seen": "amount"}
FIELDS: dict[str, dict[str, str]] = {
    "run_started": _RUN,
    "run_ended": {"status": "text"},
    "attempt_started": {},
    "attempt_ended": {"reason": "text"},
    "resource_joined": {
        "resource": "text!",
        "instance_type": "text",
        "account_id": "text",
        "region": "text",
        "accelerators_used": "count",
        "reservation_id": "text",
        "node_rank": "count",
        "market": "text",
        "evidence": "text",
    },
    "resource_left": {"resource": "text!"},
    "phase_started": {"phase": "text!"},
    "phase_ended": {"phase": "text!"},
    "epoch_started": {"epoch": "count!"},
    "epoch_completed": {"epoch": "count!", "fraction": "amount", **_PROGRESS},
    "checkpoint_started": {"checkpoint_id": "text", "uri": "text", "step": "count"},
    "checkpoint_saved": {
        "checkpoint_id": "text",
        "uri": "text",
        "bytes": "count",
        "stall_seconds": "amount",
        "resumable": "flag",
        "complete": "flag",
        "kind": "text",
        **_PROGRESS,
    },
    "evaluation": {"metric": "text!", "value": "number!", "split": "text", "step": "count"},
    "heartbeat": _PROGRESS,
}
_TARGET = ("target_metric", "target_value", "target_direction")
_FORMS = {
    "text": "text",
    "count": "a whole number of 0 or more",
    "amount": "a number of 0 or more",
    "number": "a finite number",
    "flag": "true or false",
}


@dataclass(frozen=True)
class Event:
    """One event; `at` is naive UTC, `place` the file and line it stands in, `text` its whole content."""

    kind: str
    run_id: str
    attempt: int
    at: datetime
    fields: dict[str, Any]
    text: str
    place: str


def parse_event(line: bytes, place: str) -> Event:
    """The event of a line; SourceError naming file, line and key when it is none."""
    try:
        body = json.loads(line)
    except ValueError as error:
        raise SourceError(f"{place} is not JSON ({error}); mend or remove the line.") from None
    if not isinstance(body, dict):
        raise SourceError(f"{place} is not a JSON object; write one event a line.")
    for key in ("event", "run_id"):
        if not isinstance(body.get(key), str) or not body[key]:
            raise SourceError(f"{place} has no {key}; every event needs one, as text.")
    kind = body["event"]
    attempt = body.get("attempt", 1)
    if not _fits(attempt, "count") or attempt < 1:
        raise SourceError(f"{place}: attempt is {attempt!r}; number attempts from 1.")
    forms = FIELDS.get(kind, {})
    fields = {}
    for name, form in forms.items():
        value = body.get(name)
        if value is None:
            if form.endswith("!"):
                raise SourceError(f"{place}: {kind} has no {name}; add it.")
            continue
        if not _fits(value, form.rstrip("!")):
            raise SourceError(f"{place}: {name} is {value!r}; write {_FORMS[form.rstrip('!')]}.")
        fields[name] = value
    if kind == "run_started":
        _check_target(fields, place)
    text = json.dumps(body, sort_keys=True)
    return Event(kind, body["run_id"], attempt, _moment(body.get("at"), place), fields, text, place)


def _fits(value: Any, form: str) -> bool:
    if form == "text":
        return isinstance(value, str)
    if form == "flag":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if form == "count":
        return value == int(value) and value >= 0
    return form == "number" or value >= 0


def _moment(value: Any, place: str) -> datetime:
    if not isinstance(value, str):
        raise SourceError(f"{place} has no at; give the time as RFC 3339, like 2026-07-01T10:02:11Z.")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise SourceError(f"{place}: at is {value!r}; write RFC 3339, like 2026-07-01T10:02:11Z.") from None
    if moment.tzinfo is None:
        raise SourceError(f"{place}: at is {value!r}, without a zone; add Z or an offset like +02:00.")
    return moment.astimezone(UTC).replace(tzinfo=None)


def _check_target(fields: dict[str, Any], place: str) -> None:
    given = [name for name in _TARGET if name in fields]
    if given and len(given) < len(_TARGET):
        lacking = next(name for name in _TARGET if name not in fields)
        raise SourceError(f"{place}: {given[0]} is given without {lacking}; give all three target fields or none.")
    if given and fields["target_direction"] not in ("min", "max"):
        raise SourceError(f"{place}: target_direction is {fields['target_direction']!r}; write min or max.")
