"""Builds a warehouse the way the main job does, without Dagster's seconds of start-up."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import polars as pl

from pipelines.commands import open_marts, published_of
from pipelines.engine import Engine
from pipelines.models.build import Builder
from pipelines.models.catalog import GIVEN, Catalog
from pipelines.models.conflicts import refuse_conflicts
from pipelines.models.emptied import refuse_emptied
from pipelines.models.publish import drop_undelivered, plan, publish
from pipelines.quality.contract import load_contract
from pipelines.settings import Settings, load_settings
from pipelines.warehouse import Warehouse


def build_warehouse(config: Path, only: Collection[str] = ()) -> Builder:
    """Ingest, build every table in order and publish; the same calls the Dagster assets make.

    Where `only` names tables, just these are built, with what they rest on, and nothing is published.
    """
    return build_with(load_settings(config), only=only)


def build_with(
    settings: Settings,
    after: Callable[[Builder, str], None] = lambda builder, table: None,
    only: Collection[str] = (),
) -> Builder:
    """`build_warehouse` for settings that are loaded already; `after` hears of each table as it is done."""
    builder = Builder(Warehouse(settings))
    wanted = _resting_on(builder.catalog, only)
    with builder.lake.lock():
        planned = plan(builder.warehouse)
        for month in planned.months:
            builder.warehouse.bill.ingest(month)
        refuse_conflicts(builder, planned)
        refuse_emptied(builder, planned)
        drop_undelivered(builder, planned)
        builder.read_runs()
        builder.read_reservations()
        builder.read_registrations()
        builder.read_commitments()
        for model in builder.catalog.ordered:
            if model.stored and (not only or model.name in wanted):
                for period in planned.months if model.grain == "month" else (None,):
                    builder.build(model.name, period)
                after(builder, model.name)
        if not only:
            publish(builder, planned)
    return builder


def _resting_on(catalog: Catalog, names: Collection[str]) -> set[str]:
    """The tables themselves, what they are made from, and what the checks of any of them read."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in catalog and name not in found:
            found.add(name)
            waiting += [*catalog[name].inputs, *load_contract(catalog[name].key).reads]
    return found


def ask(builder: Builder, sql: str) -> pl.DataFrame:
    """A SELECT over every stored table of the warehouse as just built."""
    with open_tables(builder) as engine:
        return engine.query(sql)


def open_tables(builder: Builder) -> Engine:
    """An engine that holds every stored table that was built, all months."""
    from pipelines.engine.duckdb import DuckDBEngine

    engine = DuckDBEngine()
    # The bill itself is read one month at a time, and so is what rests on it; what was not built is not there.
    per_month = set(GIVEN)
    for model in builder.catalog.ordered:
        if model.stored:
            if files := builder.lake.files(model.key):
                engine.view(model.name, files)
            else:
                per_month.add(model.name)
        elif per_month.isdisjoint(model.inputs):
            engine.view_sql(model.name, model.text)
        else:
            per_month.add(model.name)
    return engine


def open_publication(builder: Builder, number: int) -> Engine:
    """An engine that holds every table as publication `number` made it visible."""
    from pipelines.engine.duckdb import DuckDBEngine

    published = {publication.number: publication for publication in builder.lake.publications()}[number]
    engine = DuckDBEngine()
    for key, table in published.tables.items():
        engine.view(key.rpartition("/")[2], builder.lake.named_files(key, table["files"]))
    return engine


def ask_published(builder: Builder, sql: str) -> pl.DataFrame:
    """A SELECT over the published marts, as a reader sees them."""
    with open_marts(builder.warehouse, published_of(builder.warehouse)) as engine:
        return engine.query(sql)
