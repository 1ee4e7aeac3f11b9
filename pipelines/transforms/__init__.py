"""Core tables that SQL expresses badly; pure Polars, one module per table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]
Rows = list[Row]
Frames = Mapping[str, "pl.DataFrame"]
"""The inputs of a transform by name."""


def number(value: Any) -> float | None:
    """A value as a number; None for null."""
    return None if value is None else float(value)


def quotient(part: Any, whole: Any) -> float | None:
    """Part over whole; None where either is null, or the whole zero."""
    return None if part is None or not whole else float(part) / float(whole)
