"""One line of a run-event file: an event, or an error that names the key and the fix."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pipelines.base.parse import MOST_LEVELS, ParseError, parse_json
from pipelines.ingest.runs.event_fields import (
    COUNT,
    FIELDS,
    MACHINE,
    MOMENT,
    REQUIRED,
    SKIPPED,
    SPELLINGS,
    TARGET,
    TEXT,
    Form,
    any_machine,
)

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
