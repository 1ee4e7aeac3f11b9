"""Builds a warehouse as `trainledger build` does, and opens it for questions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import polars as pl

from pipelines.config.settings import Settings, load_settings
from pipelines.engine import Engine
from pipelines.models.build import Builder
from pipelines.models.catalog import INPUT_TABLES
from pipelines.models.marts import open_marts
from pipelines.models.publish import plan
from pipelines.models.refresh import refresh
from pipelines.models.warehouse import Warehouse, published_of


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
        refresh(builder, plan(builder.warehouse), lambda step, month: after(builder, step), only)
    return builder


def ask(builder: Builder, sql: str) -> pl.DataFrame:
    """A SELECT over every stored table of the warehouse as just built."""
    with open_tables(builder) as engine:
        return engine.query(sql)


def open_tables(builder: Builder) -> Engine:
    """An engine that holds every stored table that was built, all months."""
    from pipelines.engine.duckdb import DuckDBEngine

    engine = DuckDBEngine()
    # The bill itself is read one month at a time, and so is what rests on it; what was not built is not there.
    per_month = set(INPUT_TABLES)
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
