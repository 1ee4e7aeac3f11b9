"""What a source of runs gives that no table can hold: told by name, and read as unknown rather than guessed."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import polars as pl

from pipelines.base.errors import SourceError

# What reading a value of another form than it should have comes to.
MALFORMED = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, csv.Error,
)  # fmt: skip
# More epochs than any run has: what tells more has its figure wrong, and each would be a row.
MOST_EPOCHS = 1_000_000
_LARGEST = 1 << 63
# What begins and what ends, by table.
_SPANS = {
    "run": ("started_at", "ended_at"),
    "attempt": ("started_at", "ended_at"),
    "resource": ("joined_at", "left_at"),
    "phase": ("started_at", "ended_at"),
}


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Refuses by name what is whole JSON or csv but lacks a part, or holds another than it should."""
    try:
        yield
    except MALFORMED as error:
        raise SourceError(f"{what} {form_of(error)}; mend it where it was written.") from error


def form_of(error: BaseException) -> str:
    """What is wrong, in words that follow the thing's name."""
    if isinstance(error, RecursionError):
        return "is nested too deep to be read"
    return f"lacks {error}" if isinstance(error, KeyError) else f"is not of its form ({error})"


def moment_of(seconds: float) -> datetime:
    """Seconds since 1970 as naive UTC. ValueError for what no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, OSError):
        raise ValueError(f"{seconds} is no time") from None


def epoch_count(position: float) -> int:
    """Whole epochs done at a position. ValueError for more than any run has."""
    if position > MOST_EPOCHS:
        raise ValueError(f"it tells epoch {position:g}")
    return int(position + 1e-6)


def clean(
    table: str, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], warnings: list[str]
) -> list[dict[str, Any]]:
    """Rows with the columns of the schema; a number no table can hold, and an end before its start, are unknown."""
    opens, closes = _SPANS.get(table, ("", ""))
    found = []
    for row in rows:
        told = {name: _held(row, name, dtype, warnings) for name, dtype in schema.items()}
        begun, ended = told.get(opens), told.get(closes)
        if begun is not None and ended is not None and ended < begun:
            warnings.append(
                f"Run {told['run_id']}: {closes} of its {table} is {ended}, before {opens} {begun}; "
                "it is read as unknown."
            )
            told[closes] = None
        found.append(told)
    return found


def _held(row: Mapping[str, Any], name: str, dtype: Any, warnings: list[str]) -> Any:
    value = row.get(name)
    if value is None or dtype not in (pl.Int64, pl.Float64):
        return value
    if isinstance(value, float) and dtype == pl.Float64:
        # Measured, and no number: a run that diverges.
        return value if math.isfinite(value) else None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        if dtype == pl.Float64:
            return float(value)
        if int(value) == value and abs(value) < _LARGEST:
            return int(value)
    run_id, shown = row.get("run_id"), str(value)[:40]
    warnings.append(f"Run {run_id}: {name} is {shown!r}, which it cannot be; it is read as unknown.")
    return None
