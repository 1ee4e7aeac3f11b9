"""The real models over made-up rows: SQL and transforms as the builder runs them, without checks, commits or marts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from pipelines.config.decisions import Decisions
from pipelines.config.policy import Policy
from pipelines.config.settings import Settings
from pipelines.config.terms import Terms
from pipelines.engine.duckdb import DuckDBEngine, file_list
from pipelines.ingest.billing.columns import CUR, LISTS, ColumnList
from pipelines.ingest.inventory.commitments import SCHEMA as COMMITMENT_SCHEMA
from pipelines.ingest.inventory.invoices import SCHEMA as INVOICE_SCHEMA
from pipelines.ingest.inventory.offers import SCHEMA as OFFER_SCHEMA
from pipelines.ingest.inventory.registrations import SCHEMAS as PROOF_SCHEMAS
from pipelines.ingest.inventory.reservations import SCHEMA as RESERVATION_SCHEMA
from pipelines.ingest.runs.records import SCHEMAS
from pipelines.ingest.serving.records import SCHEMAS as SERVING_SCHEMAS
from pipelines.models.catalog import (
    BILLS,
    COMMITMENTS,
    INVOICES,
    OFFERS,
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
NO_TERMS = Terms()
NO_DECISIONS = Decisions()
# The file of each table that was made, by its name and the relations it was made from.
_MADE: dict[tuple[str, tuple[tuple[str, str], ...]], Path] = {}
# What every made-up line of a cost and usage report has unless it states otherwise.
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
    `serving` of those of servers, `reservations` of the table of reserved capacity. What another example made from
    the same inputs is taken over.
    """

    def __init__(
        self,
        lines: Mapping[str, Sequence[Mapping[str, str]]],
        runs: Mapping[str, Sequence[Mapping[str, Any]]],
        reservations: Sequence[Mapping[str, Any]] = (),
        policy: Policy = AS_SHIPPED,
        listed: ColumnList = CUR,
        commitments: Sequence[Mapping[str, Any]] = (),
        registrations: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        invoices: Sequence[Mapping[str, Any]] = (),
        serving: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        offers: Sequence[Mapping[str, Any]] = (),
        terms: Terms = NO_TERMS,
        decisions: Decisions = NO_DECISIONS,
    ):
        self.months = tuple(sorted(lines))
        self._settings = Settings(policy=policy, terms=terms, decisions=decisions)
        self._engine = DuckDBEngine(threads=1)
        # By name and month the file of a table, which is named after what it holds.
        self._made: dict[tuple[str, str | None], Path] = {}
        for month, rows in lines.items():
            for other in LISTS:
                self._made[other.table, month] = _kept(_bill(other, month, rows if other is listed else ()))
        for name in RAW_TABLES:
            self._made[name, None] = _kept(pl.DataFrame(list(runs.get(name, ())), schema=SCHEMAS[name]))
        self._made[RESERVATIONS, None] = _kept(pl.DataFrame(list(reservations), schema=RESERVATION_SCHEMA))
        for name, schema in SERVING_SCHEMAS.items():
            self._made[name, None] = _kept(pl.DataFrame(list((serving or {}).get(name, ())), schema=schema))
        for name, schema in PROOF_SCHEMAS.items():
            self._made[name, None] = _kept(pl.DataFrame(list((registrations or {}).get(name, ())), schema=schema))
        self._made[COMMITMENTS, None] = _kept(pl.DataFrame(list(commitments), schema=COMMITMENT_SCHEMA))
        self._made[OFFERS, None] = _kept(pl.DataFrame(list(offers), schema=OFFER_SCHEMA))
        self._made[INVOICES, None] = _kept(pl.DataFrame(list(invoices), schema=INVOICE_SCHEMA))

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def ask(self, sql: str, *names: str) -> list[tuple]:
        """The rows of a SELECT over the named tables, all months."""
        for name in names:
            self._prepare(name, None)
            self._engine.view_sql(name, self._relation(name, None))
        return self._engine.query(sql).rows()

    def _prepare(self, name: str, month: str | None) -> None:
        for wanted in self._slices(name, month) if name in load_catalog() else ():
            if (name, wanted) not in self._made:
                self._made[name, wanted] = self._file(load_catalog()[name], wanted)

    def _slices(self, name: str, month: str | None) -> tuple[str | None, ...]:
        """The parts of a table that a table of this month reads."""
        if load_catalog()[name].grain == "whole":
            return (None,)
        return self.months if month is None else (month,)

    def _file(self, model: Model, month: str | None) -> Path:
        for name in model.inputs:
            self._prepare(name, month)
        relations = tuple((name, self._relation(name, month)) for name in model.inputs)
        if (model.name, relations) not in _MADE:
            for name, relation in relations:
                self._engine.view_sql(name, relation)
            _MADE[model.name, relations] = self._make(model)
        return _MADE[model.name, relations]

    def _relation(self, name: str, month: str | None) -> str:
        """The SELECT that shows a table to one of this month, or of all."""
        if name in BILLS:
            return _typed_bill(name, self._made[name, month])
        if name in PUBLISHED:
            # Nothing was published before.
            columns = load_contract(PUBLISHED[name]).columns
            typed = ", ".join(f"cast(null as {column.type}) as {column.name}" for column in columns)
            return f"select {typed} where 1 = 0"
        if name == DELIVERIES:
            return delivery_select([])
        if name == THIS_MONTH:
            return month_select(month)
        if name in CONFIGURED:
            return configured_select(name, self._settings)
        slices = self._slices(name, month) if name in load_catalog() else (None,)
        files = file_list([self._made[name, period] for period in slices])
        return f"from read_parquet({files}, hive_partitioning = false)"

    def _make(self, model: Model) -> Path:
        source = model.text if model.kind == "sql" else "select * from made"
        if model.kind != "sql":
            is_list = model.kind == "reference"
            frame = pl.read_csv(model.path, infer_schema=False) if is_list else model.transform(self._engine.query)
            self._engine.view("made", [_kept(frame)])
        contract = load_contract(model.key)
        columns = ", ".join(f'cast("{c.name}" as {c.type}) as "{c.name}"' for c in contract.columns)
        order = ", ".join(f'"{name}"' for name in contract.key or [c.name for c in contract.columns])
        out = Path(_folder().name) / "made.parquet"
        self._engine.write(f"select {columns} from ({source}) as rows order by {order}", out)
        return _named(out)


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


def _kept(frame: pl.DataFrame) -> Path:
    out = Path(_folder().name) / "frame.parquet"
    frame.write_parquet(out)
    return _named(out)


def _named(written: Path) -> Path:
    """The file under the name of what it holds."""
    return written.rename(written.with_name(f"{sha256(written.read_bytes()).hexdigest()}.parquet"))


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory()
