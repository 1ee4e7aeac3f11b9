"""Values of trackers: times, epochs and numbers; one that no table can hold is named in a warning and unknown."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import polars as pl

from pipelines.base.errors import SourceError

# What reading a value of an unexpected form raises.
MALFORMED = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, csv.Error,
)  # fmt: skip
# More epochs than any run has; each would be a row.
MOST_EPOCHS = 1_000_000
_LARGEST = 1 << 63
# Start and end columns by table.
_SPANS = {
    **dict.fromkeys(("run", "attempt", "phase"), ("started_at", "ended_at")),
    "resource": ("joined_at", "left_at"),
}


@contextmanager
def reading(what: str) -> Iterator[None]:
    """SourceError, named `what`, for well-formed JSON or csv that lacks a part or holds an unexpected one."""
    try:
        yield
    except MALFORMED as error:
        raise SourceError(f"{what} {malformation(error)}; fix it where it was written.") from error


def malformation(error: BaseException) -> str:
    """What is wrong, continuing the name of the thing."""
    if isinstance(error, RecursionError):
        return "is nested too deep to be read"
    return f"lacks {error}" if isinstance(error, KeyError) else f"has an unexpected form ({error})"


def utc(value: datetime | str | float | None) -> datetime | None:
    """Naive UTC from a time, ISO text or seconds since 1970; None for none. ValueError for what no calendar has."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float):
        return moment_of(value)
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


def moment_of(seconds: float) -> datetime:
    """Seconds since 1970 as naive UTC. ValueError for what no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, OSError):
        raise ValueError(f"{seconds} is not a time") from None


def epoch_count(position: float) -> int:
    """Whole epochs done at a position. ValueError for more than any run has."""
    if position > MOST_EPOCHS:
        raise ValueError(f"it reports epoch {position:g}")
    return int(position + 1e-6)


def is_evaluation(metric: str) -> bool:
    """Whether the name of a metric is that of an evaluation: `val_loss`, `eval/accuracy`."""
    return metric.replace("/", "_").split("_")[0] in ("val", "valid", "validation", "test", "eval")


def clean(
    table: str, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], warnings: list[str]
) -> list[dict[str, Any]]:
    """Rows with the columns of the schema; a number no table can hold, and an end before its start, are unknown."""
    opens, closes = _SPANS.get(table, ("", ""))
    found = []
    for row in rows:
        kept = {name: _held(row, name, dtype, warnings) for name, dtype in schema.items()}
        begun, ended = kept.get(opens), kept.get(closes)
        if begun is not None and ended is not None and ended < begun:
            warnings.append(
                f"Run {kept['run_id']}: {closes} of its {table} is {ended}, before {opens} {begun}; "
                "it is read as unknown."
            )
            kept[closes] = None
        found.append(kept)
    return found


def _held(row: Mapping[str, Any], name: str, dtype: Any, warnings: list[str]) -> Any:
    value = row.get(name)
    if value is None or dtype not in (pl.Int64, pl.Float64):
        return value
    if isinstance(value, float) and dtype == pl.Float64:
        # A run that diverges measures NaN.
        return value if math.isfinite(value) else None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        if dtype == pl.Float64:
            return float(value)
        if int(value) == value and abs(value) < _LARGEST:
            return int(value)
    run_id, shown = row.get("run_id"), str(value)[:40]
    warnings.append(f"Run {run_id}: {name} cannot be {shown!r}; it is read as unknown.")
    return None
