"""The kinds of check a table can have, and how a contract file writes them.

A check is a plain value: what must hold, of which columns, and whether a failure stops the build (`error`) or
is printed under the report (`warn`). Nothing here runs a check; `suite` turns it into an expectation.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

from pipelines.base.errors import UsageError

Severity = Literal["error", "warn"]
Kind = Literal["columns", "unique", "not_null", "not_negative", "in_set", "between", "rows"]

WRITTEN_KINDS: tuple[Kind, ...] = ("not_null", "not_negative", "in_set", "between", "rows")

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Check:
    """One promise about a table.

    `name` is unique within the table, of letters, digits and underscores; `title` says it in words. `values`
    holds the allowed values of an `in_set` check and the two bounds of a `between` check, None for an open
    side. `query` is the SELECT of a `rows` check, `{batch}` standing for the table: any row it gives fails; `shows`
    is a SELECT of the figures it is about, kept with the result also when nothing fails.
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


def derived_checks(key: tuple[str, ...]) -> list[Check]:
    """The checks every table has: columns as typed; a key that is unique and never null, where it has one."""
    checks = [Check("columns_as_typed", "columns and types match the contract", "columns", "error")]
    if key:
        title = f"{' + '.join(key)} names one row"
        checks.append(Check("key_unique", title, "unique", "error", key))
    return checks + [_not_null("error", column) for column in key]


def written_checks(where: str, severity: Severity, section: Mapping[str, Any], types: Mapping[str, str]) -> list[Check]:
    """The checks of one `error:` or `warn:` section.

    `types` gives the type of each column of the table. Raises UsageError naming the file `where` and the key.
    """
    checks: list[Check] = []
    fixes = section.get("fix", {})
    for kind, body in section.items():
        if kind == "fix":
            continue
        place = f"{where}: {severity}.{kind}"
        if kind in ("not_null", "not_negative"):
            if not isinstance(body, list):
                raise UsageError(f"{place} is not a list of columns; write `{kind}: [column]`.")
            make = _not_null if kind == "not_null" else _not_negative
            checks += [make(severity, column) for column in body]
        elif kind in ("in_set", "between", "rows"):
            if not isinstance(body, dict):
                raise UsageError(f"{place} is not a mapping; write a name and its check on each line.")
            make = {"in_set": _in_set, "between": _between, "rows": _rows}[kind]
            checks += [make(f"{place}.{name}", severity, name, value) for name, value in body.items()]
        else:
            raise UsageError(f"{place} is not a kind of check; use one of {', '.join(WRITTEN_KINDS)}.")
    for check in checks:
        _refuse_misfits(f"{where}: {severity}.{check.kind}", check, types)
    if unknown := sorted({*fixes} - {check.name for check in checks}):
        raise UsageError(f"{where}: {severity}.fix names {unknown[0]}, which is no check of it; fix the name.")
    return [replace(check, fix=fixes.get(check.name, "")) for check in checks]


def named_apart(where: str, checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks with every name once: a warning that shares an error's name gets `_warn` added."""
    named: dict[str, Check] = {}
    for check in checks:
        if check.severity == "warn" and named.get(check.name, check).severity == "error":
            check = replace(check, name=f"{check.name}_warn")
        if check.name in named:
            raise UsageError(f"{where} writes the check {check.name} twice; keep one.")
        named[check.name] = check
    return tuple(named.values())


def _not_null(severity: Severity, column: str) -> Check:
    return Check(f"{column}_not_null", f"{column} is never null", "not_null", severity, (column,))


def _not_negative(severity: Severity, column: str) -> Check:
    return Check(f"{column}_not_negative", f"{column} is never negative", "not_negative", severity, (column,))


def _in_set(place: str, severity: Severity, column: str, values: Any) -> Check:
    if not isinstance(values, list) or not values:
        raise UsageError(f"{place} is not a list of values; write `{column}: [value, value]`.")
    title = f"{column} is one of {', '.join(map(str, values))}"
    return Check(f"{column}_in_set", title, "in_set", severity, (column,), tuple(values))


def _between(place: str, severity: Severity, column: str, bounds: Any) -> Check:
    if not isinstance(bounds, list) or len(bounds) != 2 or bounds == [None, None]:
        raise UsageError(f"{place} is not two bounds; write `{column}: [lowest, highest]`, null for an open side.")
    low, high = bounds
    if low is None or high is None:
        title = f"{column} is at most {high}" if low is None else f"{column} is at least {low}"
    else:
        title = f"{column} lies between {low} and {high}"
    return Check(f"{column}_between", title, "between", severity, (column,), (low, high))


def _rows(place: str, severity: Severity, name: str, query: Any) -> Check:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{place} cannot name a check; use lower-case letters, digits and underscores.")
    written = query if isinstance(query, dict) else {"fails": query}
    if "fails" not in written or set(written) - {"fails", "shows"}:
        raise UsageError(f"{place} is neither a SELECT nor a mapping of fails and shows; write one of them.")
    selects = {key: _select(place, text) for key, text in written.items()}
    return Check(name, name.replace("_", " "), "rows", severity, query=selects["fails"], shows=selects.get("shows", ""))


def _select(place: str, query: Any) -> str:
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(str(query)) if field is not None}
    except ValueError:
        fields = set()
    if fields != {"batch"}:
        raise UsageError(
            f"{place} does not read {{batch}}, the table under check, or has other braces; "
            "select its failing rows from {batch} and double any other brace."
        )
    return str(query).strip().rstrip(";")


def _refuse_misfits(place: str, check: Check, types: Mapping[str, str]) -> None:
    for column in check.columns:
        if column not in types:
            raise UsageError(f"{place} names {column}, which is not among the columns of the table; fix the name.")
        type_ = types[column]
        if check.kind == "not_negative" and not _is_number(type_):
            raise UsageError(f"{place} names {column}, a {type_}; only a number can be negative.")
        if check.kind == "between" and not (_is_number(type_) or type_ in ("DATE", "TIMESTAMP")):
            raise UsageError(f"{place} names {column}, a {type_}; only numbers and times have bounds.")
        for value in check.values:
            if value is not None and not _fits(type_, value):
                raise UsageError(f"{place}.{column} has {value!r}, which is not a {type_}; write it as one.")
    if check.kind == "between" and None not in check.values and check.values[0] > check.values[1]:
        raise UsageError(f"{place}.{check.columns[0]} has its lowest bound above its highest; swap them.")
    if check.kind == "in_set" and None in check.values:
        raise UsageError(f"{place}.{check.columns[0]} lists null; nulls are the business of not_null.")


def _is_number(type_: str) -> bool:
    return type_ in ("BIGINT", "DOUBLE") or type_.startswith("DECIMAL")


def _fits(type_: str, value: object) -> bool:
    if _is_number(type_):
        whole_only = type_ == "BIGINT"
        return isinstance(value, int if whole_only else (int, float)) and not isinstance(value, bool)
    wanted = {"VARCHAR": str, "BOOLEAN": bool, "DATE": date, "TIMESTAMP": datetime}[type_]
    if isinstance(value, datetime):
        # Times are UTC without a zone.
        return type_ == "TIMESTAMP" and value.tzinfo is None
    return isinstance(value, wanted)
