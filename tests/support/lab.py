"""The real models over made-up rows: SQL and transforms as the builder runs them, without checks, commits or marts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from pipelines.config.policy import Policy
from pipelines.config.settings import Settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.billing.columns import CUR, LISTS, ColumnList
from pipelines.ingest.inventory.commitments import SCHEMA as COMMITMENT_SCHEMA
from pipelines.ingest.inventory.registrations import SCHEMAS as PROOF_SCHEMAS
from pipelines.ingest.inventory.reservations import SCHEMA as RESERVATION_SCHEMA
from pipelines.ingest.runs.records import SCHEMAS
from pipelines.models.catalog import (
    BILLS,
    COMMITMENTS,
    PROOF_TABLES,
    PUBLISHED,
    RAW_TABLES,
    RESERVATIONS,
    Model,
    load_catalog,
)
from pipelines.models.contract import load_contract
from pipelines.models.session import (
    CONFIGURED,
    DELIVERIES,
    THIS_MONTH,
    configured_select,
    delivery_select,
    month_select,
)

TAGS = ("tag_run_id", "tag_owner", "tag_team", "tag_json")
OURS = ("source_name", "delivery_id", "billing_period", "source_file", *TAGS)
AS_SHIPPED = Policy()
# What every made-up line of a cost and usage report has unless it says otherwise.
LINE = {
    "bill_invoice_id": "INV-1",
    "bill_payer_account_id": "000011112222",
    "line_item_currency_code": "USD",
    "line_item_line_item_type": "Usage",
    "line_item_operation": "RunInstances",
    "line_item_product_code": "AmazonEC2",
    "line_item_usage_account_id": "000033334444",
}


class Lab:
    """Makes any table of the house from bill lines and run records, once each.

    `lines` are rows of a raw bill table by month (YYYY-MM), as text; `runs` are rows of the tracker tables,
    `reservations` of the table of reserved capacity.
    """

    def __init__(
        self,
        root: Path,
        lines: Mapping[str, Sequence[Mapping[str, str]]],
        runs: Mapping[str, Sequence[Mapping[str, Any]]],
        reservations: Sequence[Mapping[str, Any]] = (),
        policy: Policy = AS_SHIPPED,
        listed: ColumnList = CUR,
        commitments: Sequence[Mapping[str, Any]] = (),
        registrations: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ):
        self.months = tuple(sorted(lines))
        self._root = root
        self._policy = policy
        self._engine = DuckDBEngine(threads=1)
        self._made: dict[tuple[str, str | None], Path] = {}
        for month, rows in lines.items():
            for other in LISTS:
                self._keep(other.table, month, _bill(other, month, rows if other is listed else ()))
        for name in RAW_TABLES:
            self._keep(name, None, pl.DataFrame(list(runs.get(name, ())), schema=SCHEMAS[name]))
        self._keep(RESERVATIONS, None, pl.DataFrame(list(reservations), schema=RESERVATION_SCHEMA))
        for name, schema in PROOF_SCHEMAS.items():
            self._keep(name, None, pl.DataFrame(list((registrations or {}).get(name, ())), schema=schema))
        self._keep(COMMITMENTS, None, pl.DataFrame(list(commitments), schema=COMMITMENT_SCHEMA))

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def ask(self, sql: str, *names: str) -> list[tuple]:
        """The rows of a SELECT over the named tables, all months."""
        for name in names:
            model = load_catalog()[name]
            files = [self._file(model, month) for month in self._slices(model)]
            self._engine.view(name, files)
        return self._engine.query(sql).rows()

    def _slices(self, model: Model) -> tuple[str | None, ...]:
        return self.months if model.grain == "month" else (None,)

    def _file(self, model: Model, month: str | None) -> Path:
        if (model.name, month) not in self._made:
            for name in model.inputs:
                self._prepare(name, month)
            # Views are named once more when all inputs are made, for making them moved the names.
            for name in model.inputs:
                self._show(name, month)
            self._made[model.name, month] = self._make(model, month)
        return self._made[model.name, month]

    def _prepare(self, name: str, month: str | None) -> None:
        if name in load_catalog():
            model = load_catalog()[name]
            for wanted in self._slices(model) if month is None else (month if model.grain == "month" else None,):
                self._file(model, wanted)

    def _show(self, name: str, month: str | None) -> None:
        if name in BILLS:
            self._engine.view_sql(name, _typed_bill(name, self._made[name, month]))
        elif name in PUBLISHED:
            # Nothing was published before.
            columns = load_contract(PUBLISHED[name]).columns
            typed = ", ".join(f"cast(null as {column.type}) as {column.name}" for column in columns)
            self._engine.view_sql(name, f"select {typed} where 1 = 0")
        elif name == DELIVERIES:
            self._engine.view_sql(name, delivery_select([]))
        elif name == THIS_MONTH:
            self._engine.view_sql(name, month_select(month))
        elif name in CONFIGURED:
            self._engine.view_sql(name, configured_select(name, Settings(policy=self._policy)))
        elif name in (*RAW_TABLES, RESERVATIONS, COMMITMENTS, *PROOF_TABLES):
            self._engine.view(name, [self._made[name, None]])
        else:
            model = load_catalog()[name]
            wanted = self._slices(model) if month is None else (month if model.grain == "month" else None,)
            self._engine.view(name, [self._made[name, period] for period in wanted])

    def _make(self, model: Model, month: str | None) -> Path:
        source = model.text if model.kind == "sql" else "select * from made"
        if model.kind == "reference":
            self._engine.view("made", [_reference(model.path)])
        if model.kind == "transform":
            self._engine.view("made", [self._keep(f"{model.name}.made", month, model.transform(self._engine.query))])
        contract = load_contract(model.key)
        columns = ", ".join(f'cast("{c.name}" as {c.type}) as "{c.name}"' for c in contract.columns)
        order = ", ".join(f'"{name}"' for name in contract.key or [c.name for c in contract.columns])
        out = self._path(model.name, month)
        self._engine.write(f"select {columns} from ({source}) as rows order by {order}", out)
        return out

    def _keep(self, name: str, month: str | None, frame: pl.DataFrame) -> Path:
        path = self._path(name, month)
        frame.write_parquet(path)
        self._made[name, month] = path
        return path

    def _path(self, name: str, month: str | None) -> Path:
        return self._root / f"{name}.{month or 'whole'}.parquet"


def _columns(listed: ColumnList) -> dict[str, str]:
    typed = {column.name: column.type for column in listed.columns}
    return {**dict.fromkeys(OURS, "VARCHAR"), "source_row": "BIGINT", **typed}


def _bill(listed: ColumnList, month: str, lines: Sequence[Mapping[str, str]]) -> pl.DataFrame:
    start = {"billing_period": month, "source_name": "payer", "delivery_id": "d-1", "source_file": "part-1"}
    if listed is CUR:
        start |= {**LINE, "bill_billing_period_start_date": f"{month}-01 00:00:00"}
    rows = [{**start, "source_row": str(number), **line} for number, line in enumerate(lines)]
    return pl.DataFrame(rows, schema=dict.fromkeys(_columns(listed), pl.String))


def _typed_bill(table: str, file: Path) -> str:
    (listed,) = (listed for listed in LISTS if listed.table == table)
    columns = ", ".join(f'cast("{name}" as {kind}) as "{name}"' for name, kind in _columns(listed).items())
    return f"select {columns} from read_parquet('{file}')"


@cache
def _reference(path: Path) -> Path:
    """A list as Parquet, written once for all examples."""
    out = Path(_kept().name) / f"{path.stem}.parquet"
    pl.read_csv(path, infer_schema=False).write_parquet(out)
    return out


@cache
def _kept() -> TemporaryDirectory[str]:
    return TemporaryDirectory()
