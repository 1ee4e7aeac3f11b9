"""Builds a warehouse the way the main job does, without Dagster's seconds of start-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from pipelines.commands import open_marts, published_of
from pipelines.engine import Engine
from pipelines.models.build import Builder
from pipelines.models.catalog import GIVEN
from pipelines.models.emptied import refuse_emptied
from pipelines.models.publish import drop_undelivered, plan, publish
from pipelines.settings import Settings, load_settings
from pipelines.warehouse import Warehouse


def build_warehouse(config: Path) -> Builder:
    """Ingest, build every table in order and publish; the same calls the Dagster assets make."""
    return build_with(load_settings(config))


def build_with(settings: Settings, after: Callable[[Builder, str], None] = lambda builder, table: None) -> Builder:
    """`build_warehouse` for settings that are loaded already; `after` hears of each table as it is done."""
    builder = Builder(Warehouse(settings))
    with builder.lake.lock():
        planned = plan(builder.warehouse)
        for month in planned.months:
            builder.warehouse.bill.ingest(month)
        refuse_emptied(builder, planned)
        drop_undelivered(builder, planned)
        builder.read_runs()
        builder.read_reservations()
        builder.read_commitments()
        for model in builder.catalog.ordered:
            if model.stored:
                for period in planned.months if model.grain == "month" else (None,):
                    builder.build(model.name, period)
                after(builder, model.name)
        publish(builder, planned)
    return builder


def ask(builder: Builder, sql: str) -> pl.DataFrame:
    """A SELECT over every stored table of the warehouse as just built."""
    with open_tables(builder) as engine:
        return engine.query(sql)


def open_tables(builder: Builder) -> Engine:
    """An engine that holds every stored table, all months."""
    from pipelines.engine.duckdb import DuckDBEngine

    engine = DuckDBEngine()
    # The bill itself is read one month at a time, and so is what rests on it.
    per_month = set(GIVEN)
    for model in builder.catalog.ordered:
        if model.stored:
            engine.view(model.name, builder.lake.files(model.key))
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
