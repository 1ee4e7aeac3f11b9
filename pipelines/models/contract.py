"""The contract of a table, read from expectations/.

A contract has in `expectations/<layer>/<table>.yml` the grain, the key, the columns and the checks of a
table; a column's type, unit and meaning stand once in `expectations/columns.yml`, or in the table's own file
where they are local to it. The builder casts to it, and Great Expectations suites, Dagster check
specifications and the data dictionary are derived from it; reading it needs none of them. That the columns
are as typed, and the key unique and never null, is checked for every table and written nowhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipelines.base import resources
from pipelines.base.code import code_digest
from pipelines.base.errors import UsageError
from pipelines.base.parse_cache import digest_of, keep, kept
from pipelines.models.checks import Check, derived_checks, named_apart, written_checks

# The owner of a table that names no other.
OWNER = "ml-finops"

_KEYS = ("grain", "description", "owner", "key", "columns", "error", "warn")
_COLUMN_KEYS = ("type", "unit", "meaning")
_TYPE = re.compile(r"VARCHAR|BIGINT|DOUBLE|BOOLEAN|DATE|TIMESTAMP|DECIMAL\([1-9]\d?,\d{1,2}\)")


@dataclass(frozen=True)
class Column:
    """A column: its DuckDB type, its unit (None where it has none) and what it means, in one sentence."""

    name: str
    type: str
    unit: str | None
    meaning: str


@dataclass(frozen=True)
class Contract:
    """What the table `layer/name` promises. `key` is empty for a table whose rows have no name."""

    table: str
    grain: str
    description: str
    owner: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    reads: tuple[str, ...]
    """Other tables that `rows` checks name; `validate` needs their files."""

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides what is built and whether it passes; wording does not count."""
        columns = [(column.name, column.type) for column in self.columns]
        checks = [replace(check, fix="") for check in self.checks]
        return hashlib.sha256(repr((self.table, self.key, columns, checks)).encode()).hexdigest()


@cache
def load_contract(table: str, folder: Path = resources.EXPECTATIONS) -> Contract:
    """The contract of the table `layer/name`.

    Raises UsageError naming the file and the key that is wrong.
    """
    if folder == resources.EXPECTATIONS and (record := _parsed().get(table)):
        return _recorded(record)
    return _contract(table, folder)


@cache
def contract_paths(folder: Path = resources.EXPECTATIONS) -> Mapping[str, Path]:
    """The contract files below a folder, by the table `layer/name` each is of; subject folders do not count."""
    paths = sorted(path for path in folder.rglob("*.yml") if path.parent != folder)
    return {f"{path.relative_to(folder).parts[0]}/{path.stem}": path for path in paths}


@cache
def load_columns(folder: Path = resources.EXPECTATIONS) -> Mapping[str, Column]:
    """The columns that `columns.yml` types once for all tables, by name."""
    from pipelines.models.strict_yaml import read_mapping

    path = folder / "columns.yml"
    return {name: _column(path, name, body) for name, body in read_mapping(path).items()}


@cache
def _parsed() -> dict[str, Any]:
    """Our contracts as JSON has them, by table, parsed once for each state of their files; without those that fail."""
    libraries = version("pyyaml"), version("sqlglot")
    parts = (digest_of(resources.EXPECTATIONS, "*.yml"), code_digest(__name__), libraries)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    if (known := kept("contracts", key)) is None:
        known = {}
        for table in contract_paths(resources.EXPECTATIONS):
            # The error is raised when that contract is loaded.
            with suppress(UsageError):
                known[table] = _record(_contract(table, resources.EXPECTATIONS))
        keep("contracts", key, known)
    return known


def _record(contract: Contract) -> dict[str, Any]:
    record = asdict(contract)
    for check in record["checks"]:
        check["values"] = [{"at": v.isoformat()} if isinstance(v, date) else v for v in check["values"]]
    return record


def _recorded(record: Mapping[str, Any]) -> Contract:
    def check(body: Mapping[str, Any]) -> Check:
        values = tuple(_moment(value["at"]) if isinstance(value, dict) else value for value in body["values"])
        return Check(**{**body, "columns": tuple(body["columns"]), "values": values})

    lists = {name: tuple(record[name]) for name in ("key", "reads")}
    columns = tuple(Column(**column) for column in record["columns"])
    return Contract(**{**record, **lists, "columns": columns, "checks": tuple(map(check, record["checks"]))})


def _moment(text: str) -> date:
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)


def _contract(table: str, folder: Path) -> Contract:
    from pipelines.models.strict_yaml import read_mapping

    path = contract_paths(folder).get(table)
    if path is None:
        raise UsageError(f"{table} has no contract; write {folder / table}.yml.")
    shared = load_columns(folder)
    body = read_mapping(path)
    for name in body:
        if name not in _KEYS:
            raise UsageError(f"{path} has the key {name}; a contract has {', '.join(_KEYS)}.")
    if not body.get("grain"):
        raise UsageError(f"{path} states no grain; write `grain: one row per ...`.")
    columns = _columns(path, body.get("columns"), shared)
    types = {column.name: column.type for column in columns}
    key = _key(path, body.get("key"), types)
    derived = derived_checks(key)
    errors = written_checks(str(path), "error", _section(path, body, "error"), types)
    warns = written_checks(str(path), "warn", _section(path, body, "warn"), types)
    # A key column among the not_null adds nothing.
    errors = [check for check in errors if check not in derived]
    checks = named_apart(str(path), [*derived, *errors, *warns])
    return Contract(
        table=table,
        grain=body["grain"],
        description=body.get("description") or f"{body['grain'][0].upper()}{body['grain'][1:]}.",
        owner=body.get("owner", OWNER),
        key=key,
        columns=columns,
        checks=checks,
        reads=_reads(path, table, checks),
    )


def _columns(path: Path, body: Any, shared: Mapping[str, Column]) -> tuple[Column, ...]:
    if isinstance(body, list):
        body = dict.fromkeys(body) if len(set(map(str, body))) == len(body) else None
    if not isinstance(body, dict) or not body:
        raise UsageError(f"{path}: columns is not a list of names, each once, or a mapping of them.")
    columns = []
    for name, local in body.items():
        if local is not None:
            known = shared.get(name)
            inherited = {} if known is None else {key: getattr(known, key) for key in _COLUMN_KEYS}
            columns.append(_column(path, name, inherited | local if isinstance(local, dict) else local))
        elif name in shared:
            columns.append(shared[name])
        else:
            raise UsageError(f"{path}: columns names {name}, which nothing types; add it to columns.yml.")
    return tuple(columns)


def _column(path: Path, name: Any, body: Any) -> Column:
    if not isinstance(name, str) or not isinstance(body, dict):
        raise UsageError(f"{path}: the column {name} is not a mapping of {', '.join(_COLUMN_KEYS)}.")
    for key in body:
        if key not in _COLUMN_KEYS:
            raise UsageError(f"{path}: the column {name} has the key {key}; it may have {', '.join(_COLUMN_KEYS)}.")
    type_ = str(body.get("type", "")).replace(" ", "")
    if not _TYPE.fullmatch(type_):
        raise UsageError(f"{path}: the column {name} has the type {type_ or 'none'}; give it a DuckDB type we use.")
    if not body.get("meaning"):
        raise UsageError(f"{path}: the column {name} has no meaning; add one sentence.")
    return Column(name, type_, body.get("unit"), body["meaning"])


def _key(path: Path, body: Any, types: Mapping[str, str]) -> tuple[str, ...]:
    if not isinstance(body, list):
        raise UsageError(f"{path} states no key; write `key: [column]`, or `key: []` if its rows have no name.")
    for name in body:
        if name not in types:
            raise UsageError(f"{path}: key names {name}, which is not among the columns; fix the name.")
    return tuple(body)


def _section(path: Path, body: Mapping[str, Any], severity: str) -> Mapping[str, Any]:
    section = body.get(severity) or {}
    if not isinstance(section, dict):
        raise UsageError(f"{path}: {severity} is not a mapping of checks; write `{severity}: {{not_null: [column]}}`.")
    return section


def _reads(path: Path, table: str, checks: tuple[Check, ...]) -> tuple[str, ...]:
    from sqlglot.errors import ParseError

    from pipelines.models.catalog import tables_in

    own = table.rpartition("/")[2]
    read: dict[str, None] = {}
    for check in checks:
        if check.kind != "rows":
            continue
        try:
            for query in filter(None, (check.query, check.shows)):
                read.update(dict.fromkeys(tables_in(query.format(batch=own))))
        except ParseError:
            where = f"{path}: {check.severity}.rows.{check.name}"
            raise UsageError(f"{where} is not one SELECT in DuckDB's dialect; fix it.") from None
    return tuple(sorted(set(read) - {own}))
