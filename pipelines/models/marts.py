"""The published marts, opened for reading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.models.catalog import SCHEMAS, load_catalog

if TYPE_CHECKING:
    from pipelines.engine.duckdb import DuckDBEngine
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.publication import Publication


def open_marts(warehouse: Warehouse, published: Publication) -> DuckDBEngine:
    """An engine with the published marts and their drill-downs, as `mart_x` and as `mart.mart_x`, and nothing else."""
    from pipelines.engine.duckdb import DuckDBEngine

    engine = DuckDBEngine(memory_limit=warehouse.settings.warehouse.memory_limit)
    for name, files in mart_files(warehouse, published.tables).items():
        engine.view(qualified(name), files)
    engine.close_off()
    return engine


def mart_files(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Path]]:
    """The files of every public table of a publication, by its name."""
    return {
        model.name: warehouse.lake.named_files(model.key, tables[model.key]["files"])
        for model in load_catalog().public
        if model.key in tables
    }


def qualified(name: str) -> str:
    """A public table as `schema.name`."""
    return f"{SCHEMAS[load_catalog()[name].layer]}.{name}"
