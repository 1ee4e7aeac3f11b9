"""One line of a run-event file: an event, or an error that names the key and the fix."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from pipelines.base.limits import MOST_PASSES
from pipelines.base.parse import MOST_LEVELS, ParseError, parse_json


@dataclass(frozen=True)
class Form:
    """Values of a field: `read` gives the clean value or raises ValueError, `wants` is the fix."""

    dtype: type[pl.DataType]
    read: Callable[[Any], Any]
    wants: str


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
_CLOCK = "[0-9]{2}:[0-9]{2}"
_RFC3339 = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK}:[0-9]{{2}}(\.[0-9]+)?([Zz]|[+-]{_CLOCK})")


def _text(value: Any) -> str | None:
    if type(value) is not str:
        raise ValueError
    if not value.isascii():
        # Half a surrogate pair is legal JSON but no text that a table can hold.
        value.encode()
    return value or None


def _count(value: Any) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


def _passes(value: Any) -> int:
    if not 1 <= (count := _count(value)) <= MOST_PASSES:
        raise ValueError
    return count


def _number(value: Any) -> float:
    if type(value) is float and -1e300 < value < 1e300:
        return value
    if type(value) not in (int, float) or abs(value) > 1e300 or math.isnan(value):
        raise ValueError
    return float(value)


def _measure(value: Any) -> float:
    """A run that diverges measures NaN or Infinity; the measurement is kept, as NaN."""
    if value in ("NaN", "Infinity", "-Infinity") or (type(value) is float and not math.isfinite(value)):
        return math.nan
    return _number(value)


def _amount(value: Any) -> float:
    if (number := _number(value)) < 0:
        raise ValueError
    return number


def _share(value: Any) -> float:
    if not 0 < (number := _number(value)) <= 1:
        raise ValueError
    return number


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _moment(value: Any) -> int:
    if type(value) is not str:
        raise ValueError
    return _parsed(value)


# Many events share a time: a phase ends and the next begins, every rank saves.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    if not _RFC3339.fullmatch(text):
        raise ValueError
    return (datetime.fromisoformat(text.upper()) - EPOCH) // MS


def _one_of(*words: str) -> Form:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return value

    return Form(pl.String, read, f"write one of {', '.join(words)}")


TEXT = Form(pl.String, _text, "write text in quotes")
COUNT = Form(pl.Int64, _count, "write a whole number of 0 or more")
AMOUNT = Form(pl.Float64, _amount, "write a number of 0 or more")
NUMBER = Form(pl.Float64, _number, "write a finite number, or leave it out")
MEASURE = Form(pl.Float64, _measure, "write a number, or NaN")
PASSES = Form(pl.Int64, _passes, f"write a whole number from 1 to {MOST_PASSES}")
SHARE = Form(pl.Float64, _share, "write a number above 0 and up to 1")
FLAG = Form(pl.Boolean, _flag, "write true or false")
MOMENT = Form(pl.Int64, _moment, "write RFC 3339 with its zone, like 2026-07-01T10:02:11Z or +02:00 for the Z")

_RUN_TEXTS = (
    "model",
    "dataset",
    "precision",
    "code_revision",
    "target_metric",
    "purpose",
    "experiment",
    "team",
)
# All that describes a machine without an id.
MACHINE = ("instance_type", "account_id", "region")
TARGET = ("target_metric", "target_value", "target_direction")
FIELDS: dict[str, dict[str, Form]] = {
    "run_started": {
        **dict.fromkeys(
            (*_RUN_TEXTS, "workload_id", "owner", "parent_run_id", "base_checkpoint_id", "compile_run_id"), TEXT
        ),
        **dict.fromkeys(("dataset_tokens", "dataset_samples", "epoch_unit_size"), AMOUNT),
        **dict.fromkeys(("params_total", "params_active"), AMOUNT),
        **dict.fromkeys(("seq_len", "global_batch_samples", "n_layers", "n_heads", "head_dim"), COUNT),
        "epoch_unit": _one_of("dataset_pass", "token_block", "sample_block", "step_block"),
        "tokens_unit": _one_of("job", "device", "core"),
        "tokens_unit_count": COUNT,
        "target_value": NUMBER,
        "target_direction": _one_of("min", "max"),
        "target_passes": PASSES,
    },
    "run_ended": {"status": _one_of("completed", "failed", "killed", "abandoned", "unknown")},
    "attempt_started": {},
    "attempt_ended": {"reason": TEXT},
    "resource_joined": {
        **dict.fromkeys(("resource", "instance_type", "account_id", "region", "reservation_id", "market"), TEXT),
        **dict.fromkeys(("accelerators_used", "node_rank"), COUNT),
        "evidence": _one_of("imds", "api", "nodemap", "tag", "type_match"),
    },
    "resource_left": {"resource": TEXT},
    "phase_started": {"phase": TEXT},
    "phase_ended": {"phase": TEXT},
    "epoch_started": {"epoch": COUNT},
    "epoch_completed": {
        **dict.fromkeys(("epoch", "step"), COUNT),
        **dict.fromkeys(("tokens_seen", "samples_seen"), AMOUNT),
        "fraction": SHARE,
    },
    "checkpoint_started": {"checkpoint_id": TEXT, "uri": TEXT, "step": COUNT},
    "checkpoint_saved": {
        **dict.fromkeys(("checkpoint_id", "uri"), TEXT),
        **dict.fromkeys(("step", "bytes"), COUNT),
        **dict.fromkeys(("stall_seconds", "tokens_seen"), AMOUNT),
        **dict.fromkeys(("resumable", "complete"), FLAG),
        **dict.fromkeys(("save_started_at", "durable_at"), MOMENT),
        "kind": _one_of("full", "weights_only", "adapter", "export"),
    },
    "evaluation": {**dict.fromkeys(("metric", "split"), TEXT), "value": MEASURE, "step": COUNT},
    "heartbeat": {"step": COUNT, "tokens_seen": AMOUNT, "samples_seen": AMOUNT},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("resource_joined", "resource_left"), ("resource",)),
    **dict.fromkeys(("phase_started", "phase_ended"), ("phase",)),
    **dict.fromkeys(("epoch_started", "epoch_completed"), ("epoch",)),
    "evaluation": ("metric", "value"),
}
# Other names of the fields above, and fields that no table keeps.
SPELLINGS = {
    "end_reason": "reason",
    "resource_id": "resource",
    "billing_resource_key": "resource",
    "region_id": "region",
    "dataset_id": "dataset",
    "accel_used": "accelerators_used",
    "epoch_index": "epoch",
    "is_resumable": "resumable",
    "is_complete": "complete",
}
SKIPPED = frozenset(
    name
    for names in (
        "event run_id at attempt attempt_no rank local_rank",
        "run_name platform model_family planned_tokens seed target_split tags",
        "orchestrator orchestrator_job_id orchestrator_attempt requested_at resumed_from_checkpoint_id",
        "first_step last_step world_size clock_offset_ms",
        "resource_kind az accel_kind accel_total instance_launched_at",
        "source epoch_pos loss start_step end_step is_recomputed",
        "durable_evidence is_async object_count samples_seen direction in_loop",
    )
    for name in names.split()
)


def any_machine(instance_type: str, node_rank: int | None) -> str:
    """The name of a machine known only by its type; those of one gang differ by their rank."""
    return f"any {instance_type}" if not node_rank else f"any {instance_type} {node_rank}"


def clock(at: int) -> str:
    """Milliseconds since 1970 UTC as RFC 3339."""
    return (EPOCH + at * MS).isoformat().replace("+00:00", "Z")


# What JSONDecoder itself reads with; its stub leaves it out.
_SCAN = json.JSONDecoder().scan_once  # pyright: ignore[reportAttributeAccessIssue]


# The reader of each field by its own name.
_READERS = {kind: {name: form.read for name, form in forms.items()} for kind, forms in FIELDS.items()}


class Wrong(ValueError):
    """What is wrong with a line and how to fix it, continuing its address."""


class Event(NamedTuple):
    """One event, `at` in ms since 1970 UTC; `attempt` may be missing; `strange` are unknown keys."""

    kind: str
    run_id: str
    attempt: int | None
    at: int
    values: dict[str, Any]
    strange: list[str]


def parse_event(line: bytes) -> Event:
    """The event of a line; Wrong, with the key at fault and the fix, for anything else."""
    # Millions of lines pass here: the most frequent case is tried first, and nothing is read twice.
    body = _object(line)
    kind = _needed(body, "event", TEXT)
    run_id = _needed(body, "run_id", TEXT)
    at = _needed(body, "at", MOMENT)
    attempt = body.pop("attempt") if "attempt" in body else body.pop("attempt_no", None)
    if attempt is not None and not (type(attempt) is int and 0 < attempt < 1 << 63):
        attempt = _attempt(attempt)
    values: dict[str, Any] = {}
    strange: list[str] = []
    if (forms := FIELDS.get(kind)) is None:
        return Event(kind, run_id, attempt, at, values, strange)
    readers = _READERS[kind]
    for key, value in body.items():
        if value is not None and (read := readers.get(key)) is not None:
            try:
                values[key] = read(value)
            except ValueError:
                raise _refused(key, forms[key], value) from None
            continue
        if (form := forms.get(name := key)) is None:
            if key in SKIPPED:
                continue
            if (form := forms.get(name := SPELLINGS.get(key, key))) is None:
                strange.append(key)
                continue
        if value is not None:
            try:
                values[name] = form.read(value)
            except ValueError:
                raise _refused(key, form, value) from None
    if kind == "resource_joined" and "resource" not in values:
        _describe_machine(values)
    for key in REQUIRED.get(kind, ()):
        if values.get(key) is None:
            raise Wrong(f"is `{kind}` without `{key}`; add it.")
    if kind == "run_started":
        _check_whole(values)
    return Event(kind, run_id, attempt, at, values, strange)


def _describe_machine(values: dict[str, Any]) -> None:
    """A machine without an id is described by its type; the bill must then have exactly one such."""
    if missing := " and ".join(f"`{key}`" for key in MACHINE if not values.get(key)):
        raise Wrong(f"is `resource_joined` without `resource`; add it, or {missing} where it is unknown.")
    values |= {"resource": any_machine(values["instance_type"], values.get("node_rank")), "evidence": "type_match"}


def _check_whole(values: dict[str, Any]) -> None:
    """Refuse the start of a run with half a target, or with tokens per device and no number of devices."""
    if 0 < sum(values.get(key) is not None for key in TARGET) < len(TARGET):
        missing = " and ".join(f"`{key}`" for key in TARGET if values.get(key) is None)
        raise Wrong(f"gives a target without {missing}; give {', '.join(TARGET)} or none of them.")
    if values.get("tokens_unit", "job") != "job" and not values.get("tokens_unit_count"):
        unit = values["tokens_unit"]
        raise Wrong(f"counts tokens by {unit} without `tokens_unit_count`; add how many of them the job has.")


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode()
        body, end = _SCAN(text, 0)
        if (end < len(text) and not text[end:].isspace()) or text.count("[") + text.count("{") > MOST_LEVELS:
            raise StopIteration
    except (StopIteration, ValueError, RecursionError):
        body = _explained(line)
    if type(body) is not dict:
        raise Wrong("is not a JSON object; write one event a line.")
    return body


def _explained(line: bytes) -> Any:
    """The JSON of a line once more, slowly, for the reason why it is invalid."""
    try:
        return parse_json(line.decode())
    except UnicodeDecodeError:
        raise Wrong("is not UTF-8 text; fix or remove the line.") from None
    except ParseError as error:
        raise Wrong(f"{error}; fix or remove the line.") from None


def _attempt(value: Any) -> int:
    try:
        attempt = COUNT.read(value)
    except ValueError:
        raise _refused("attempt", COUNT, value) from None
    if attempt < 1:
        raise Wrong("has `attempt` 0; number attempts from 1.")
    return attempt


def _needed(body: dict[str, Any], key: str, form: Form) -> Any:
    """Remove a required key from the body; its value."""
    value = body.pop(key, None)
    try:
        if value is not None and (found := form.read(value)) is not None:
            return found
    except ValueError:
        raise _refused(key, form, value) from None
    raise Wrong(f"has no `{key}`; every event needs one: {form.wants}.")


def _refused(key: str, form: Form, value: Any) -> Wrong:
    shown = json.dumps(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return Wrong(f"has `{key}` {shown}; {form.wants}.")
