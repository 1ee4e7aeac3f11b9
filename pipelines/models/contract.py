"""The contract of a table, read from expectations/.

A contract has in `expectations/<layer>/<table>.yml` the grain, the key, the columns and the checks of a
table; a column's type, unit and meaning stand once in `expectations/columns/`, a file for each subject, or in
the table's own file where they are local to it. The builder casts to it, and Great Expectations suites, Dagster
check specifications and the data dictionary are derived from it; reading it needs none of them. That the columns
are as typed, and the key unique and never null, is checked for every table and written nowhere.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.base import resources
from pipelines.base.code import code_digest
from pipelines.base.errors import UsageError
from pipelines.base.parse_cache import digest_of, kept
from pipelines.models.checks import Check, Kind, Severity

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

# The owner of a table that names no other.
OWNER = "ml-finops"

_NUMBERS = re.compile(r"\d+")
_TYPE = r"^(VARCHAR|BIGINT|DOUBLE|BOOLEAN|DATE|TIMESTAMP|DECIMAL\([1-9]\d?,\d{1,2}\))$"
# The values of checks, by the type of their column; those of other types are numbers.
_VALUES = {"VARCHAR": (str,), "BOOLEAN": (bool,), "DATE": (date,), "TIMESTAMP": (datetime,), "BIGINT": (int,)}
_WORDS = Annotated[str, Field(min_length=1)]

# The folder of the columns, next to those of the layers.
_COLUMNS = "columns"


@dataclass(frozen=True)
class Column:
    """A column: its DuckDB type, its unit (None where it has none) and what it means, in one sentence."""

    name: str
    type: str
    unit: str | None
    meaning: str


@dataclass(frozen=True)
class Access:
    """What a reader of chosen teams sees of a public table: its rows under a condition, without some columns.

    In the condition `{teams}` stands for the list of the teams, `{runs}` for the SELECT of their runs.
    """

    rows: str
    withheld: tuple[str, ...] = ()


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
    access: Access | None = None
    """None: only a reader of all teams sees the table."""

    def frame(self, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        """Rows by column as a frame of the table's types; a column that a row lacks is null.

        Numbers keep twelve digits: beyond them logarithms differ from machine to machine. Decimals stay exact.
        """
        import polars as pl

        types = {
            "VARCHAR": pl.String, "BIGINT": pl.Int64, "DOUBLE": pl.Float64, "BOOLEAN": pl.Boolean, "DATE": pl.Date,
            "TIMESTAMP": pl.Datetime("us"),
        }  # fmt: skip
        made = {}
        for column in self.columns:
            values = [row.get(column.name) for row in rows]
            is_exact = any(isinstance(value, Decimal) for value in values)
            if column.type.startswith("DECIMAL") and is_exact:
                values = [Decimal(repr(value)) if isinstance(value, float) else value for value in values]
                made[column.name] = pl.Series(values, dtype=pl.Decimal(38, 10))
            else:
                made[column.name] = pl.Series(values, dtype=types.get(column.type, pl.Float64), strict=False)
        return pl.DataFrame(made).with_columns(pl.col(pl.Float64).round_sig_figs(12))

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as Parquet files hold them."""
        import pyarrow as pa

        types = {
            "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(),
            "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
        }  # fmt: skip
        decimals = (_NUMBERS.findall(column.type) for column in self.columns)
        return pa.schema(
            (column.name, pa.decimal128(*map(int, digits)) if digits else types[column.type])
            for column, digits in zip(self.columns, decimals, strict=True)
        )

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides what is built and whether it passes; wording does not count."""
        columns = [(column.name, column.type) for column in self.columns]
        checks = [replace(check, fix="") for check in self.checks]
        return hashlib.sha256(repr((self.table, self.key, columns, checks)).encode()).hexdigest()


def _fields(text: str) -> set[str]:
    """The names in braces of a text; none where its braces do not pair."""
    try:
        return {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}
    except ValueError:
        return set()


def _select(query: str) -> str:
    if _fields(query) != {"batch"}:
        raise ValueError("it does not read {batch}, the table under check, or has other braces; double those")
    return query.strip().rstrip(";")


def _reviewed(sets: Any) -> Any:
    """The values of each column; for the name of a list of sql/reference, its column of that name."""
    if isinstance(sets, dict):
        for column, values in sets.items():
            if isinstance(values, str) and (path := resources.REFERENCE / f"{values}.csv").is_file():
                sets[column] = [row[column] for row in resources.listed_rows(path)]
    return sets


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Column(_Strict):
    type: Annotated[str, BeforeValidator(lambda kind: str(kind).replace(" ", "")), Field(pattern=_TYPE)]
    unit: str | None = None
    meaning: _WORDS


class _Rows(_Strict):
    """A SELECT of the rows that fail, and one of the figures to show."""

    fails: Annotated[str, AfterValidator(_select)]
    shows: Annotated[str, AfterValidator(_select)] | None = None


class _Section(_Strict):
    """The checks of one severity, by their kind."""

    not_null: list[str] = []
    not_negative: list[str] = []
    in_set: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], BeforeValidator(_reviewed)] = {}
    # The lowest and the highest, null for an open side.
    between: dict[str, Annotated[tuple[Any, Any], Field(strict=False)]] = {}
    rows: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")],
        Annotated[_Rows, BeforeValidator(lambda query: {"fails": query} if isinstance(query, str) else query)],
    ] = {}
    # What to do, by the name of the check.
    fix: dict[str, str] = {}

    def checks(self, severity: Severity) -> list[Check]:
        """Each with what to do about it."""
        return [replace(check, fix=self.fix.get(check.name, "")) for check in self._checks(severity)]

    def _checks(self, severity: Severity) -> Iterator[Check]:
        for column in self.not_null:
            yield _of_column("not_null", severity, column, "is never null")
        for column in self.not_negative:
            yield _of_column("not_negative", severity, column, "is never negative")
        for column, values in self.in_set.items():
            yield _of_column("in_set", severity, column, f"is one of {', '.join(map(str, values))}", *values)
        for column, (low, high) in self.between.items():
            title = f"lies between {low} and {high}" if low is not None else f"is at most {high}"
            title = f"is at least {low}" if high is None else title
            yield _of_column("between", severity, column, title, low, high)
        for name, rows in self.rows.items():
            yield Check(name, name.replace("_", " "), "rows", severity, query=rows.fails, shows=rows.shows or "")


def _names_teams(condition: str) -> str:
    if _fields(condition) not in ({"teams"}, {"runs"}):
        raise ValueError("it does not choose rows by {teams} or by {runs}; add one of them")
    return condition


class _Access(_Strict):
    """The condition of the rows that a reader of chosen teams sees, and the columns that are null then."""

    rows: Annotated[str, AfterValidator(_names_teams)]
    withheld: list[str] = []


class _File(_Strict):
    """A contract as it is written."""

    grain: _WORDS
    description: str = ""
    owner: str = OWNER
    key: list[str]
    columns: Annotated[
        dict[str, dict[str, Any] | None],
        BeforeValidator(lambda names: dict.fromkeys(names) if isinstance(names, list) else names),
        Field(min_length=1),
    ]
    access: _Access | None = None
    error: _Section | None = None
    warn: _Section | None = None


@cache
def load_contract(table: str, folder: Path = resources.EXPECTATIONS) -> Contract:
    """The contract of the table `layer/name`.

    Raises UsageError naming the file and the key that is wrong.
    """
    if folder == resources.EXPECTATIONS and (record := _parsed().get(table)):
        # JSON has lists for tuples.
        return _recorder().validate_python(record)
    return _contract(table, folder)


@cache
def contract_paths(folder: Path = resources.EXPECTATIONS) -> Mapping[str, Path]:
    """The contract files below a folder, by the table `layer/name` each is of; subject folders do not count."""
    paths = sorted(path for path in folder.rglob("*.yml") if path.parent != folder / _COLUMNS)
    return {f"{path.relative_to(folder).parts[0]}/{path.stem}": path for path in paths}


@cache
def load_columns(folder: Path = resources.EXPECTATIONS) -> Mapping[str, Column]:
    """The columns that the files of `columns/`, one for each subject, type once for all tables, by name."""
    typed: dict[str, Column] = {}
    for path in sorted((folder / _COLUMNS).glob("*.yml")):
        columns = _columns(path, _mapping(path))
        if twice := next((name for name in columns if name in typed), None):
            raise UsageError(f"{path}: {twice} is typed in another file of {path.parent} too; keep one.")
        typed |= columns
    return typed


@cache
def _parsed() -> dict[str, Any]:
    """Our contracts as JSON has them, by table, parsed once for each state of their files."""
    libraries = version("pyyaml"), version("sqlglot")
    files = digest_of(resources.EXPECTATIONS, "*.yml"), digest_of(resources.REFERENCE, "*.csv")
    parts = (files, code_digest(__name__), libraries)
    return kept(
        "contracts",
        parts,
        lambda: {table: asdict(_contract(table, resources.EXPECTATIONS)) for table in contract_paths()},
    )


@cache
def column_units() -> Mapping[str, str]:
    """The units of the columns of our tables, by name; empty for a column without one."""
    return {column["name"]: column["unit"] or "" for table in _parsed().values() for column in table["columns"]}


@cache
def _recorder() -> TypeAdapter[Contract]:
    return TypeAdapter(Contract)


def _contract(table: str, folder: Path) -> Contract:
    path = contract_paths(folder).get(table)
    if path is None:
        raise UsageError(f"{table} has no contract; write {folder / table}.yml.")
    written: _File = _validated(path, _File, _mapping(path))
    shared = load_columns(folder)
    bodies = {name: _body(shared.get(name)) | (own or {}) for name, own in written.columns.items()}
    columns = _columns(path, bodies)
    types = {name: column.type for name, column in columns.items()}
    access = written.access and Access(written.access.rows, (*written.access.withheld,))
    if access and (unknown := sorted({*access.withheld} - {*types})):
        raise UsageError(f"{path}: access.withheld names {unknown[0]}, which is not among the columns; fix the name.")
    derived = [Check("columns_as_typed", "columns and types match the contract", "columns", "error")]
    if written.key:
        derived.append(
            Check("key_unique", f"{' + '.join(written.key)} identifies one row", "unique", "error", (*written.key,))
        )
    derived += [_of_column("not_null", "error", column, "is never null") for column in written.key]
    sections: dict[Severity, _Section | None] = {"error": written.error, "warn": written.warn}
    # A key column among the not_null adds nothing.
    own = (check for severity, one in sections.items() if one for check in one.checks(severity))
    written_checks = [*derived, *(check for check in own if replace(check, fix="") not in derived)]
    checks = _named_apart(path, (_fitting(path, check, types) for check in written_checks))
    return Contract(
        table=table,
        grain=written.grain,
        description=written.description or f"{written.grain[0].upper()}{written.grain[1:]}.",
        owner=written.owner,
        key=tuple(written.key),
        columns=tuple(columns.values()),
        checks=checks,
        reads=_reads(table, checks),
        access=access,
    )


def _body(column: Column | None) -> dict[str, Any]:
    return {key: value for key, value in asdict(column).items() if key != "name"} if column else {}


def _mapping(path: Path) -> dict[str, Any]:
    from pipelines.models.strict_yaml import read_mapping

    return read_mapping(path)


def _columns(path: Path, body: Mapping[str, Any]) -> dict[str, Column]:
    written: dict[str, _Column] = _validated(path, dict[str, _Column], body)
    return {name: Column(name, one.type, one.unit, one.meaning) for name, one in written.items()}


def _validated(path: Path, kind: Any, body: Mapping[str, Any]) -> Any:
    try:
        return TypeAdapter(kind).validate_python(body)
    except ValidationError as error:
        mistake = error.errors()[0]
        key, message = ".".join(map(str, mistake["loc"])), mistake["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path}: {key}: {message}.") from None


def _of_column(kind: Kind, severity: Severity, column: str, title: str, *values: Any) -> Check:
    return Check(f"{column}_{kind}", f"{column} {title}", kind, severity, (column,), values)


def _named_apart(path: Path, checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks with every name once: a warning that shares an error's name gets `_warn` added."""
    named: dict[str, Check] = {}
    for check in checks:
        if check.severity == "warn" and named.get(check.name, check).severity == "error":
            check = replace(check, name=f"{check.name}_warn")
        if check.name in named:
            raise UsageError(f"{path} writes the check {check.name} twice; keep one.")
        named[check.name] = check
    return tuple(named.values())


def _fitting(path: Path, check: Check, types: Mapping[str, str]) -> Check:
    """The check with its days and times as text; UsageError where a column or value does not fit the table."""
    place = f"{path}: {check.severity}.{check.kind}"
    for column in check.columns:
        kind = types.get(column)
        if kind is None:
            raise UsageError(f"{place} names {column}, which is not among the columns of the table; fix the name.")
        for value in check.values:
            is_open = value is None and check.kind == "between"
            # Times are UTC without a zone; True is no number.
            is_fit = type(value) in _VALUES.get(kind, (int, float)) and getattr(value, "tzinfo", None) is None
            if not is_open and not is_fit:
                raise UsageError(f"{place}.{column} has {value!r}, which is not a {kind}; write it as one.")
    return replace(check, values=tuple(v.isoformat() if isinstance(v, date) else v for v in check.values))


def _reads(table: str, checks: Iterable[Check]) -> tuple[str, ...]:
    from pipelines.base.sql import tables_in

    own = table.rpartition("/")[2]
    queries = (query for check in checks for query in (check.query, check.shows) if query)
    read = {name for query in queries for name in tables_in(query.format(batch=own))}
    return tuple(sorted(read - {own}))
