"""One line of a run-event file: an event, or an error that names the key and the fix.

FIELDS lists the fields of each kind of event and their forms (design 2; facts training-runs 2).
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from pipelines.base.limits import MOST, MOST_ACCELERATORS, MOST_PASSES
from pipelines.base.parse import ParseError, parse_json

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
_CLOCK = "[0-9]{2}:[0-9]{2}"
_RFC3339 = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK}:[0-9]{{2}}(\.[0-9]+)?([Zz]|[+-]{_CLOCK})")


@dataclass(frozen=True, slots=True)
class Form:
    """Values of a field: `read` gives the clean value or raises ValueError, `wants` is the fix.

    `plain` matches the most frequent JSON texts that a cast to `dtype` reads as `read` does, their value as its group;
    empty where there is none.
    """

    dtype: type[pl.DataType]
    read: Callable[[Any], Any]
    wants: str
    plain: str = ""


def _text(value: Any) -> str | None:
    if type(value) is not str:
        raise ValueError
    # Half a surrogate pair is legal JSON but no text that a table can hold.
    value.encode()
    return value or None


def _count(value: Any) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value <= MOST:
        raise ValueError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or abs(value) > 1e150 or math.isnan(value):
        raise ValueError
    return float(value)


def _measure(value: Any) -> float:
    """A run that diverges measures NaN or Infinity; the measurement is kept, as NaN."""
    if value in ("NaN", "Infinity", "-Infinity") or (type(value) is float and not math.isfinite(value)):
        return math.nan
    return _number(value)


def _moment(value: Any) -> int:
    if type(value) is not str or not _RFC3339.fullmatch(value):
        raise ValueError
    # A leap second, or 59.9996 rounded up, is the first second of the next minute.
    text, leap_ms = (f"{value[:17]}59{value[19:]}", 1000) if value[17:19] == "60" else (value, 0)
    if (at := (datetime.fromisoformat(text.upper()) - EPOCH) // MS + leap_ms) < 0:
        raise ValueError
    return at


def _within(read: Callable[[Any], Any], is_within: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if not is_within(found := read(value)):
            raise ValueError
        return found

    return checked


def _one_of(*words: Any) -> Callable[[Any], Any]:
    return _within(lambda value: value, lambda value: type(value) is type(words[0]) and value in words)


def _word(*words: str) -> Form:
    return Form(pl.String, _one_of(*words), f"write one of {', '.join(words)}", f'"({"|".join(words)})"')


_DIGITS = "0|[1-9][0-9]{0,14}"
_REST = r"(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?"
# Not -0, which is a whole number to Python and has no sign.
_NUMBERS = f"((?:0|-?[1-9][0-9]{{0,16}}){_REST})"
_TEXT = Form(pl.String, _text, "write text in quotes", r'"([^"\\\x00-\x1f]*)"')
_COUNT = Form(pl.Int64, _count, f"write a whole number from 0 to {MOST:,}", f"({_DIGITS})")
_ATTEMPT = Form(pl.Int64, _within(_count, lambda count: count > 0), "number attempts from 1", "([1-9][0-9]{0,14})")
_ACCELERATORS = Form(
    pl.Int64,
    _within(_count, lambda count: count <= MOST_ACCELERATORS),
    "write how many accelerators it uses",
    "(0|[1-9][0-9]{0,5})",
)
# Of what is counted there is no part of one.
_AMOUNT = Form(
    pl.Float64,
    _within(_number, lambda number: number == 0 or 1 <= number <= MOST),
    f"write 0, or a number from 1 to {MOST:,}",
    r"(0|[1-9][0-9]{0,14}(?:\.[0-9]{1,20})?)",
)
_SECONDS = Form(
    pl.Float64,
    _within(_number, lambda number: 0 <= number < 1e9),
    "write seconds of 0 or more",
    r"((?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,20})?)",
)
_NUMBER = Form(pl.Float64, _number, "write a finite number, or leave it out", _NUMBERS)
_MEASURE = Form(pl.Float64, _measure, "write a number, or NaN", _NUMBERS)
_PASSES = Form(
    pl.Int64, _within(_count, lambda count: 1 <= count <= MOST_PASSES), f"write a whole number from 1 to {MOST_PASSES}"
)
_SHARE = Form(
    pl.Float64,
    _within(_number, lambda number: 0 < number <= 1),
    "write a number above 0 and up to 1",
    r"(1|1\.0|0\.[0-9]{0,15}[1-9][0-9]?)",
)
_FLAG = Form(pl.Boolean, _one_of(True, False), "write true or false", "(true|false)")
_MOMENT = Form(
    pl.Int64,
    _moment,
    "write RFC 3339 with its zone, like 2026-07-01T10:02:11Z or +02:00 for the Z",
    r'"(20[0-9]{2}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?)Z"',
)

# The status of a run that ended in no word of the list.
UNRECOGNIZED = "unrecognized"
# All that describes a machine without an id.
_MACHINE = ("instance_type", "account_id", "region")
TARGET = ("target_metric", "target_value", "target_direction")


def _each(form: Form, names: str) -> dict[str, Form]:
    return dict.fromkeys(names.split(), form)


FIELDS: dict[str, dict[str, Form]] = {
    "run_started": {
        **_each(_TEXT, "model dataset precision code_revision target_metric purpose experiment team"),
        **_each(_TEXT, "workload_id owner parent_run_id base_checkpoint_id compile_run_id"),
        **_each(_AMOUNT, "dataset_tokens dataset_samples epoch_unit_size params_total params_active"),
        **_each(_COUNT, "seq_len global_batch_samples n_layers n_heads head_dim"),
        "epoch_unit": _word("dataset_pass", "token_block", "sample_block", "step_block"),
        "tokens_unit": _word("job", "device", "core"),
        "tokens_unit_count": _ACCELERATORS,
        "target_value": _NUMBER,
        "target_direction": _word("min", "max"),
        "target_passes": _PASSES,
    },
    "run_ended": {"status": _word("completed", "failed", "killed", "abandoned", "unknown")},
    "attempt_started": {},
    "attempt_ended": {"reason": _TEXT},
    "resource_joined": {
        **_each(_TEXT, "resource instance_type account_id region reservation_id market"),
        "accelerators_used": _ACCELERATORS,
        "node_rank": _COUNT,
        "evidence": _word("imds", "api", "nodemap", "tag", "type_match"),
    },
    "resource_left": {"resource": _TEXT},
    "phase_started": {"phase": _TEXT},
    "phase_ended": {"phase": _TEXT},
    "epoch_started": {"epoch": _COUNT},
    "epoch_completed": {
        **_each(_COUNT, "epoch step"),
        **_each(_AMOUNT, "tokens_seen samples_seen"),
        "fraction": _SHARE,
    },
    "checkpoint_started": {"checkpoint_id": _TEXT, "uri": _TEXT, "step": _COUNT},
    "checkpoint_saved": {
        **_each(_TEXT, "checkpoint_id uri"),
        **_each(_COUNT, "step bytes"),
        "stall_seconds": _SECONDS,
        "tokens_seen": _AMOUNT,
        **_each(_FLAG, "resumable complete"),
        **_each(_MOMENT, "save_started_at durable_at"),
        "kind": _word("full", "weights_only", "adapter", "export"),
    },
    "evaluation": {**_each(_TEXT, "metric split"), "value": _MEASURE, "step": _COUNT},
    "heartbeat": {"step": _COUNT, "tokens_seen": _AMOUNT, "samples_seen": _AMOUNT},
}
_REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("resource_joined", "resource_left"), ("resource",)),
    **dict.fromkeys(("phase_started", "phase_ended"), ("phase",)),
    **dict.fromkeys(("epoch_started", "epoch_completed"), ("epoch",)),
    "evaluation": ("metric", "value"),
}
# Other names of the fields above, and fields that no table keeps.
_SPELLINGS = {
    "end_reason": "reason", "resource_id": "resource", "billing_resource_key": "resource", "region_id": "region",
    "dataset_id": "dataset", "accel_used": "accelerators_used", "epoch_index": "epoch", "is_resumable": "resumable",
    "is_complete": "complete",
}  # fmt: skip
_UNUSED = (
    "event run_id at attempt attempt_no rank local_rank run_name platform model_family planned_tokens seed "
    "target_split tags orchestrator orchestrator_job_id orchestrator_attempt requested_at resumed_from_checkpoint_id "
    "first_step last_step world_size clock_offset_ms resource_kind az accel_kind accel_total instance_launched_at "
    "source epoch_pos loss start_step end_step is_recomputed durable_evidence is_async object_count samples_seen "
    "direction in_loop"
)
_SKIPPED = frozenset(_UNUSED.split())
_ALWAYS = {"run_id": _TEXT, "at": _MOMENT, "attempt": _ATTEMPT}


# Kinds whose fields depend on each other.
_ENTANGLED = ("run_started",)
_PLAIN_SKIPPED = f'(?:"[^"\\\\\\x00-\\x1f]*"|{_NUMBERS.replace("(", "(?:", 1)}|true|false)'


class Wrong(ValueError):
    """What is wrong with a line and how to fix it, continuing its address."""


def run_of(line: bytes) -> str | None:
    """The run that a line names; None where it names none, or several, or cannot be read."""
    try:
        body, twice = _object(line)
        return None if twice == "run_id" else _needed(body, "run_id", _TEXT)
    except Wrong:
        return None


class Event(NamedTuple):
    """One event, `at` in ms since 1970 UTC; `attempt` may be missing; `strange` are unknown keys.

    `odd_end` is what is wrong with the status of an end, which is then UNRECOGNIZED.
    """

    kind: str
    run_id: str
    attempt: int | None
    at: int
    values: dict[str, Any]
    strange: list[str]
    odd_end: str = ""


def parse_event(line: bytes) -> Event:
    """The event of a line; Wrong, with the key at fault and the fix, for anything else."""
    body, twice = _object(line)
    if twice:
        raise Wrong(f"has `{twice}` twice; keep the right one.")
    kind, run_id, at = _needed(body, "event", _TEXT), _needed(body, "run_id", _TEXT), _needed(body, "at", _MOMENT)
    attempt = body.pop("attempt") if "attempt" in body else body.pop("attempt_no", None)
    attempt = None if attempt is None else _needed({"attempt": attempt}, "attempt", _ATTEMPT)
    values: dict[str, Any] = {}
    strange: list[str] = []
    odd_end = ""
    if (forms := FIELDS.get(kind)) is None:
        return Event(kind, run_id, attempt, at, values, strange)
    for key, value in body.items():
        name = key if key in forms else _SPELLINGS.get(key, key)
        if name in forms:
            if value is not None:
                try:
                    values[name] = _read(key, forms[name], value)
                except Wrong as wrong:
                    if name != "status":
                        raise
                    # However a run ended, it did.
                    values[name], odd_end = UNRECOGNIZED, str(wrong)
        elif key not in _SKIPPED:
            strange.append(key)
    if kind == "resource_joined" and "resource" not in values:
        # A machine without an id is described by its type; the bill must then have exactly one such.
        if missing := _missing(values, _MACHINE):
            raise Wrong(f"is `resource_joined` without `resource`; add it, or {missing} where it is unknown.")
        machine = any_machine(values["instance_type"], values.get("node_rank"))
        values |= {"resource": machine, "evidence": "type_match"}
    for key in _REQUIRED.get(kind, ()):
        if values.get(key) is None:
            raise Wrong(f"is `{kind}` without `{key}`; add it.")
    if kind == "run_started":
        if any(values.get(key) is not None for key in TARGET) and (missing := _missing(values, TARGET)):
            raise Wrong(f"gives a target without {missing}; give {', '.join(TARGET)} or none of them.")
        unit = values.get("tokens_unit", "job")
        if unit != "job" and not values.get("tokens_unit_count"):
            raise Wrong(f"counts tokens by {unit} without `tokens_unit_count`; add how many of them the job has.")
    return Event(kind, run_id, attempt, at, values, strange, odd_end)


def plain_lines(kind: str, keys: Sequence[str]) -> tuple[str, dict[str, Form]] | None:
    """A pattern of lines of a kind with exactly these keys in this order, and the field of each of its groups.

    `parse_event` reads a line that matches to the same values: a cast of each group, "" and null being missing; a time
    must be one of the calendar. None where there is no such pattern.
    """
    forms, required = FIELDS.get(kind, {}), {"event", "run_id", "at", *_REQUIRED.get(kind, ())}
    names = [key if key in forms or key in _SKIPPED else _SPELLINGS.get(key, key) for key in keys]
    is_known = all(name in forms or name in _SKIPPED for name in names) and required <= {*names}
    if kind not in FIELDS or kind in _ENTANGLED or not is_known or len({*names}) < len(names):
        return None
    if "attempt" in names and "attempt_no" in names:
        return None
    groups: dict[str, Form] = {}
    parts = []
    for key, name in zip(keys, names, strict=True):
        name = "attempt" if name == "attempt_no" else name
        form = _ALWAYS.get(name) or forms.get(name)
        if name == "event":
            value = f'"{kind}"'
        elif form is None:
            value = f"(?:{_PLAIN_SKIPPED}|null)"
        elif not form.plain:
            return None
        else:
            groups[name] = form
            value = form.plain.replace("]*)", "]+)") if name in required else f"(?:{form.plain}|null)"
        parts.append(rf'[ \t]*"{key}"[ \t]*:[ \t]*{value}[ \t]*')
    return rf"^[ \t]*\{{{','.join(parts)}\}}[ \t\r]*$", groups


def _missing(values: dict[str, Any], names: tuple[str, ...]) -> str:
    return " and ".join(f"`{name}`" for name in names if values.get(name) in (None, ""))


def _object(line: bytes) -> tuple[dict[str, Any], str | None]:
    """The object of a line, and the first key that it or an object in it has twice."""
    found: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        body = dict(pairs)
        if len(body) < len(pairs):
            names = [name for name, _ in pairs]
            found.append(next(name for name in names if names.count(name) > 1))
        return body

    try:
        body = parse_json(line.decode(), object_pairs_hook=collect)
    except UnicodeDecodeError:
        raise Wrong("is not UTF-8 text; fix or remove the line.") from None
    except ParseError as error:
        raise Wrong(f"{error}; fix or remove the line.") from None
    if type(body) is not dict:
        raise Wrong("is not a JSON object; write one event a line.")
    return body, next(iter(found), None)


def _needed(body: dict[str, Any], key: str, form: Form) -> Any:
    """Remove a required key from the body; its value."""
    value = body.pop(key, None)
    if value is None or (found := _read(key, form, value)) is None:
        raise Wrong(f"has no `{key}`; every event needs one: {form.wants}.")
    return found


def _read(key: str, form: Form, value: Any) -> Any:
    try:
        return form.read(value)
    except (ValueError, TypeError):
        shown = json.dumps(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise Wrong(f"has `{key}` {shown}; {form.wants}.") from None


def any_machine(instance_type: str, node_rank: int | None) -> str:
    """The name of a machine known only by its type; those of one gang differ by their rank."""
    return f"any {instance_type}" if not node_rank else f"any {instance_type} {node_rank}"


def clock(at: int) -> str:
    """Milliseconds since 1970 UTC as RFC 3339."""
    return (EPOCH + at * MS).isoformat().replace("+00:00", "Z")
