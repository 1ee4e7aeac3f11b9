"""Published tables, opened for reading, and `marts.duckdb`, the disposable copy of them for DuckDB and BI clients."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.base.disk import is_full
from pipelines.base.errors import CheckError, TrainledgerError
from pipelines.models.catalog import MOVED, PUBLISHED_KEYS, SCHEMAS
from pipelines.models.contract import load_contract

if TYPE_CHECKING:
    from pipelines.engine import Engine
    from pipelines.engine.duckdb import DuckDBEngine
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.lake import Lake
    from pipelines.warehouse.publication import Publication

DATABASE = "marts.duckdb"


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
    return {name: warehouse.lake.named_files(key, tables[key]["files"]) for name, key in _public(tables).items()}


def _public(tables: Iterable[str]) -> dict[str, str]:
    """The public ones of tables `layer/name`, by their `schema.name`."""
    split = ((key, *key.split("/")) for key in tables)
    return {f"{SCHEMAS[layer]}.{name}": key for key, layer, name in split if layer in SCHEMAS}


def view_published(engine: Engine, lake: Lake, name: str, key: str) -> None:
    """Create a view of the published rows of the table `key`, with the columns of its present contract.

    A column the publication did not have yet is null; before the first publication there is no row. If its files
    are damaged, the newest earlier publication with complete files is used.
    """
    from pyarrow import parquet

    publication = lake.current()
    if publication and lake.damaged(publication, PUBLISHED_KEYS):
        earlier = reversed(lake.publications())
        publication = next((one for one in earlier if not lake.damaged(one, PUBLISHED_KEYS)), None)
    tables = publication.tables if publication else {}
    address = key if key in tables else MOVED.get(key, key)
    files = lake.named_files(address, tables[address]["files"]) if address in tables else []
    had = set(parquet.read_schema(files[0]).names) if files else set()
    columns = ", ".join(
        f"cast({column.name if column.name in had else 'null'} as {column.type}) as {column.name}"
        for column in load_contract(key).columns
    )
    if files:
        engine.view(f"{name}_files", files)
    engine.view_sql(name, f"select {columns} from {name}_files" if files else f"select {columns} where 1 = 0")


def is_copied(warehouse: Warehouse, publication: Publication) -> bool:
    """Whether `marts.duckdb` is of this publication, and unchanged since."""
    copy = warehouse.work / DATABASE
    return copy.is_file() and datetime.fromtimestamp(copy.stat().st_mtime, UTC) == publication.published_at


def refuse_altered(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """CheckError for the first file of a public table that changed since it was committed."""
    for key in _public(tables).values():
        for file in warehouse.lake.altered(key, tables[key]["files"]):
            raise CheckError(
                f"{file} changed after publishing; remove it and run `trainledger build`, which makes it again."
            )


def write_copy(warehouse: Warehouse, publication: Publication, before: Publication | None) -> str:
    """Bring `marts.duckdb` to a publication by one rename; why it could not be, and empty where it could.

    Only tables and months that differ from `before` are written where the copy is of that. The publication does not
    depend on its copy: what fails here is no error of the build.
    """
    from pipelines.engine.duckdb import write_database

    place, fresh = warehouse.work / DATABASE, warehouse.staging / DATABASE
    had: dict[str, list[str]] = {}
    try:
        fresh.parent.mkdir(parents=True, exist_ok=True)
        if before and is_copied(warehouse, before):
            shutil.copyfile(place, fresh)
            had = {name: before.tables[key]["files"] for name, key in _public(before.tables).items()}
        write_database(fresh, mart_files(warehouse, publication.tables), had)
        if warehouse.settings.warehouse.location.startswith("s3://"):
            warehouse.store.upload(fresh, DATABASE)
        # Its time is how the next build knows what it holds.
        moment = publication.published_at.timestamp()
        os.utime(fresh, (moment, moment))
        fresh.replace(place)
    except (OSError, TrainledgerError) as error:
        for left in fresh.parent.glob(f"{DATABASE}*"):
            left.unlink()
        return "the disk is full" if is_full(error) else str(error).rstrip(".")
    return ""
