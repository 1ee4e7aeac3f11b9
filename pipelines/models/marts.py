"""Published tables, opened for reading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.models.catalog import PUBLISHED, SCHEMAS, load_catalog
from pipelines.models.contract import load_contract

if TYPE_CHECKING:
    from pipelines.engine import Engine
    from pipelines.engine.duckdb import DuckDBEngine
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.lake import Lake
    from pipelines.warehouse.publication import Publication


def open_marts(warehouse: Warehouse, published: Publication) -> DuckDBEngine:
    """An engine with the published marts and their drill-downs, as `mart_x` and as `mart.mart_x`, and nothing else."""
    from pipelines.engine.duckdb import DuckDBEngine

    engine = DuckDBEngine(memory_limit=warehouse.settings.warehouse.memory_limit)
    for name, files in mart_files(warehouse, published.tables).items():
        engine.view(name, files)
    engine.close_off()
    return engine


def mart_files(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Path]]:
    """The files of every public table of a publication, by its `schema.name`, whatever version built it."""
    return {
        f"{SCHEMAS[layer]}.{name}": warehouse.lake.named_files(key, table["files"])
        for key, table in tables.items()
        for layer, _, name in [key.partition("/")]
        if layer in SCHEMAS
    }


def qualified(name: str) -> str:
    """A public table as `schema.name`."""
    return f"{SCHEMAS[load_catalog()[name].layer]}.{name}"


def view_published(engine: Engine, lake: Lake, name: str, key: str) -> None:
    """Create a view of the published rows of the table `key`, with the columns of its present contract.

    A column the publication did not have yet is null; before the first publication there is no row. If its files
    are damaged, the newest earlier publication with complete files is used.
    """
    from pyarrow import parquet

    publication = lake.current()
    if publication and lake.damaged(publication, PUBLISHED.values()):
        earlier = reversed(lake.publications())
        publication = next((one for one in earlier if not lake.damaged(one, PUBLISHED.values())), None)
    table = publication.tables.get(key) if publication else None
    files = lake.named_files(key, table["files"]) if table else []
    had = set(parquet.read_schema(files[0]).names) if files else set()
    columns = ", ".join(
        f"cast({column.name if column.name in had else 'null'} as {column.type}) as {column.name}"
        for column in load_contract(key).columns
    )
    if files:
        engine.view(f"{name}_files", files)
    engine.view_sql(name, f"select {columns} from {name}_files" if files else f"select {columns} where 1 = 0")
