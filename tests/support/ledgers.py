"""Builds a warehouse as `trainledger build` does, and opens it for questions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import polars as pl

from pipelines.base.sql import tables_in
from pipelines.config.settings import Settings, load_settings
from pipelines.engine import Engine
from pipelines.exports.focus import CHARGES
from pipelines.models.build import Builder
from pipelines.models.catalog import Catalog, load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.marts import open_marts
from pipelines.models.publish import drop_undelivered, plan
from pipelines.models.records import RECORDS, Records
from pipelines.models.refresh import read_bill, refresh
from pipelines.models.session import CONFIGURED, configured_select
from pipelines.models.warehouse import Warehouse, published_of

# What some commands read: a test that runs one publishes just these.
EXPLAIN_TABLES = ("fct_ledger_line", "fct_ledger", "stg_aws__invoice_total", "mart_cost_ledger_daily")
EXPLAIN_TABLES += ("mart_invoice_reconciliation_monthly", "mart_run_cost", "detail_provisional_run")
EXPLAIN_TABLES += ("detail_commitment_utilization_daily", "detail_billing_month")
FOCUS_TABLES = (*CHARGES, "ref_service")
REPRICE_TABLES = ("mart_silicon_comparison", "mart_run_cost", "mart_price_book")


def build_warehouse(config: Path, only: Collection[str] = ()) -> Builder:
    """Ingest, build every table in order and publish; the same calls the Dagster assets make.

    Where `only` names tables, just these are built, with what they rest on, and nothing is published.
    """
    return build_with(load_settings(config), only=only)


def build_with(
    settings: Settings,
    after: Callable[[Builder, str], None] = lambda builder, step: None,
    only: Collection[str] = (),
) -> Builder:
    """`build_warehouse` for settings that are loaded already; `after` is called with each step that is done."""
    builder = Builder(Warehouse(settings))
    with builder.lake.lock():
        planned = plan(builder.warehouse)

        def report(step: str, month: str) -> None:
            after(builder, step)

        if not only:
            refresh(builder, planned, report)
            return builder
        read_bill(builder, planned, planned.months)
        drop_undelivered(builder, planned)
        for records in records_of(builder, only):
            records(builder.warehouse)
        for built in builder.build_steps(builder.steps(planned.months, only)):
            report(built.table, built.period or "")
    return builder


def records_of(builder: Builder, tables: Collection[str]) -> list[Records]:
    """The records that have a source, which may be at fault, and those without one that `tables` rest on."""
    settings, catalog = builder.warehouse.settings, builder.catalog
    read = {name for table in builder._resting_on(tables) for name in catalog.resting_on(catalog[table])}
    return [
        records
        for what, records in RECORDS.items()
        if not read.isdisjoint(records.tables)
        or (settings.proof.registrations if what == "registrations" else records.sources(settings))
    ]


def publish_tables(config: Path, tables: Collection[str]) -> Builder:
    """`build_warehouse` of just these tables and what they rest on, which are published as if there were no others."""
    return publish_tables_with(load_settings(config), tables)


def publish_tables_with(settings: Settings, tables: Collection[str]) -> Builder:
    """`publish_tables` for settings that are loaded already."""
    builder = Builder(Warehouse(settings), catalog_of(tables))
    with builder.lake.lock():
        refresh(builder, plan(builder.warehouse))
    return builder


def catalog_of(tables: Collection[str]) -> Catalog:
    """The catalog of these tables and what they rest on, as if there were no others."""
    catalog = load_catalog()
    waiting, models = list(tables), {}
    while waiting:
        name = waiting.pop()
        if name in catalog and name not in models:
            models[name] = catalog[name]
            waiting += [*catalog[name].inputs, *load_contract(catalog[name].key).reads]
    return Catalog(list(models.values()))


class LazyBuilder(Builder):
    """Has read its sources, and builds a table when a test first asks for it; it publishes nothing."""

    def __init__(self, settings: Settings):
        super().__init__(Warehouse(settings))
        self._made: set[str] = set()
        planned = plan(self.warehouse)
        self._months = planned.months
        self._read: list[Records] = []
        with self.lake.lock():
            read_bill(self, planned, self._months)
            self._read_records(())

    def bring(self, names: Collection[str]) -> None:
        """Build these tables and what they rest on, as far as they are not built yet."""
        wanted = {name for name in names if name in self.catalog} - self._made
        if wanted:
            with self.lake.lock():
                steps = [step for step in self.steps(self._months, wanted) if step[0] not in self._made]
                self._read_records(wanted)
                for _ in self.build_steps(steps):
                    pass
            self._made |= wanted | {name for name, _ in steps}

    def _read_records(self, tables: Collection[str]) -> None:
        for records in records_of(self, tables):
            if records not in self._read:
                records(self.warehouse)
                self._read.append(records)

    def open(self, names: Sequence[str], period: str | None = None) -> Engine:
        self.bring(names)
        return super().open(names, period)

    def failing_rows(self, check: str) -> list[dict]:
        """The first rows that a check finds wrong, over all months."""
        (model,) = (
            model for model in self.catalog.ordered if check in {one.name for one in load_contract(model.key).checks}
        )
        self.bring([model.name])
        (found,) = (result for result in self.check(model.name) if result.check == check)
        return found.sample


def lazy_warehouse(config: Path) -> LazyBuilder:
    """A warehouse that has read its sources and builds just the tables that `ask` names."""
    return LazyBuilder(load_settings(config))


def ask(builder: Builder, sql: str) -> pl.DataFrame:
    """A SELECT over tables of the warehouse as just built."""
    with open_tables(builder, tables_in(sql)) as engine:
        return engine.query(sql)


def open_tables(builder: Builder, names: Collection[str]) -> Engine:
    """An engine that holds these tables, all months; none of them may read the bill itself, which is read by month."""
    from pipelines.engine.duckdb import DuckDBEngine

    if isinstance(builder, LazyBuilder):
        builder.bring(names)
    engine = DuckDBEngine(threads=1)
    shown: set[str] = set()

    def show(name: str) -> None:
        if name in CONFIGURED:
            engine.view_sql(name, configured_select(name, builder.warehouse.settings))
            return
        model = builder.catalog[name]
        if name not in shown and model.stored:
            engine.view(name, builder.lake.files(model.key))
        elif name not in shown:
            for wanted in model.inputs:
                show(wanted)
            engine.view_sql(name, model.text)
        shown.add(name)

    for name in names:
        show(name)
    return engine


def open_publication(builder: Builder, number: int) -> Engine:
    """An engine that holds every table as publication `number` made it visible."""
    from pipelines.engine.duckdb import DuckDBEngine

    published = {publication.number: publication for publication in builder.lake.publications.all()}[number]
    engine = DuckDBEngine()
    for key, table in published.tables.items():
        engine.view(key.rpartition("/")[2], builder.lake.named_files(key, table["files"]))
    return engine


def ask_published(builder: Builder, sql: str) -> pl.DataFrame:
    """A SELECT over the published marts, as a reader sees them."""
    with open_marts(builder.warehouse, published_of(builder.warehouse)) as engine:
        return engine.query(sql)
