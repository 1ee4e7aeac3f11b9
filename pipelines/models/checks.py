"""A check of a table, as a plain value; `statements` compiles it to SQL, `gate` to an expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warn"]
"""Whether a failure stops the build or is printed under the report."""
Kind = Literal["columns", "unique", "not_null", "not_negative", "in_set", "between", "rows"]


@dataclass(frozen=True)
class Check:
    """One promise about a table.

    `name` is unique within the table, of letters, digits and underscores; `title` is the check in words. `values`
    holds the allowed values of an `in_set` check and the two bounds of a `between` check, None for an open
    side; days and times are ISO 8601 text. `query` is the SELECT of a `rows` check, `{batch}` standing for the table:
    any row it gives fails; `shows` is a SELECT of the figures it is about, kept also when nothing fails. `fix` is what
    to do about a failure, in sentences.
    """

    name: str
    title: str
    kind: Kind
    severity: Severity
    columns: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    query: str = ""
    shows: str = ""
    fix: str = ""
