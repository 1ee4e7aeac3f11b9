"""Engines that run the models; `open_engine` chooses by configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.base import Engine

if TYPE_CHECKING:
    from pipelines.config.settings import Warehouse

__all__ = ["Engine", "open_engine"]


def open_engine(warehouse: Warehouse, spill: Path | None = None) -> Engine:
    """The engine the configuration names; `spill` is where DuckDB may write what memory cannot hold."""
    if warehouse.engine == "spark":
        from pipelines.engine.spark import SparkEngine, reaching

        return SparkEngine(reaching(warehouse.spark, warehouse.location, warehouse.endpoint_url, warehouse.region))
    from pipelines.engine.duckdb import DuckDBEngine

    return DuckDBEngine(memory_limit=warehouse.memory_limit, threads=warehouse.threads, spill=spill)
