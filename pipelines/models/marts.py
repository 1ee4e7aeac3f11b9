"""Published tables, opened for reading, and `marts.duckdb`, the disposable copy of them for DuckDB and BI clients."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.base.address import is_s3
from pipelines.base.errors import CheckError, EngineError, TrainledgerError, UsageError, is_full
from pipelines.base.sql import identifier, quoted
from pipelines.config.policy import Policy
from pipelines.models.catalog import ADDED, MOVED, PUBLISHED_KEYS, SCHEMAS
from pipelines.models.contract import Access, contract_paths, load_contract

if TYPE_CHECKING:
    from pipelines.config.access import Teams
    from pipelines.engine import Engine
    from pipelines.engine.duckdb import DuckDBEngine
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.lake import Lake
    from pipelines.warehouse.publication import Publication

DATABASE = "marts.duckdb"


# The schema of all rows, dropped once the rows of a reader's teams are copied.
_WHOLE = "whole"


def open_marts(warehouse: Warehouse, published: Publication, teams: Teams = None) -> DuckDBEngine:
    """An engine with the published marts and their drill-downs, as `mart_x` and as `mart.mart_x`, and nothing else.

    With `teams` it has only what a reader of these teams sees (`access` of the contracts), and no SELECT reaches more.
    A column of ADDED that the publication did not have yet is null.
    """
    from pipelines.engine.duckdb import DuckDBEngine, rows_of

    engine = DuckDBEngine(memory_limit=warehouse.settings.warehouse.memory_limit)
    public = readable(published.tables, teams)
    for name, files in mart_files(warehouse, {key: published.tables[key] for key in public.values()}).items():
        view = name if teams is None else f"{_WHOLE}.{name.rpartition('.')[2]}"
        engine.view(view, files)
        if lacking := _lacking(engine, view, public[name]):
            engine.view_sql(view, f"select *, {lacking} from {rows_of(files)}")
    if teams is not None:
        spelled = Policy.recorded(published.inputs["policy"]).team_name
        for name, key in public.items():
            engine.keep(name, _seen(engine, key, [spelled(team) for team in teams]))
        engine.forget(_WHOLE)
    engine.close_off()
    return engine


@contextmanager
def of_other_revisions(published: Publication) -> Iterator[None]:
    """UsageError where marts of another revision lack what is read of them."""
    from polars.exceptions import ColumnNotFoundError

    from pipelines.models.revision import code_revision

    try:
        yield
    except (EngineError, ColumnNotFoundError) as error:
        if published.code_revision == code_revision():
            raise
        reason = str(error).partition("; valid columns")[0]
        raise UsageError(
            f"Publication {published.number} was made by revision {published.code_revision}; this is "
            f"{code_revision()}, which needs other marts ({reason}). Run `trainledger build` for the newest bill, or "
            f"read this publication with trainledger {published.version} of that revision."
        ) from None


def _lacking(engine: Engine, view: str, key: str) -> str:
    """The columns of ADDED that a view of a published table lacks, as nulls; empty where it has all."""
    had = engine.types(view) if key in ADDED else {}
    columns = [column for column in load_contract(key).columns if column.name in ADDED[key]] if had else []
    nulls = (f"cast(null as {one.type}) as {identifier(one.name)}" for one in columns if one.name not in had)
    return ", ".join(nulls)


def readable(tables: Iterable[str], teams: Teams = None) -> dict[str, str]:
    """The public ones of tables `layer/name`, by their `schema.name`; for a reader of `teams` those with its rows."""
    split = ((key, *key.split("/")) for key in tables)
    public = {f"{SCHEMAS[layer]}.{name}": key for key, layer, name in split if layer in SCHEMAS}
    if teams is None:
        return public
    known = contract_paths()
    return {name: key for name, key in public.items() if key in known and load_contract(key).access}


def _seen(engine: DuckDBEngine, key: str, teams: Sequence[str]) -> str:
    """The SELECT of the rows and columns of a table that a reader of `teams` sees; other columns are null."""
    access = load_contract(key).access or Access("false")
    # A list needs an element, and nothing is in a list of null.
    named = f"({', '.join(map(quoted, teams)) or 'null'})"
    runs = f"(select run_id from {_WHOLE}.mart_run_cost where team in {named})"
    table = f"{_WHOLE}.{key.rpartition('/')[2]}"
    columns = ", ".join(
        f"cast(null as {kind}) as {identifier(name)}" if name in access.withheld else identifier(name)
        for name, kind in engine.types(table).items()
    )
    return f"select {columns} from {table} where {access.rows.format(teams=named, runs=runs)}"


def mart_files(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Path]]:
    """The files of every public table of a publication, by its `schema.name`, whatever version built it."""
    return {name: warehouse.lake.named_files(key, tables[key]["files"]) for name, key in readable(tables).items()}


def tables_before(lake: Lake) -> dict[str, dict[str, Any]]:
    """The tables of the publication that a build follows: the newest one whose PUBLISHED_KEYS have complete files."""
    publication = lake.publications.newest()
    if publication and lake.damaged(publication, PUBLISHED_KEYS):
        earlier = reversed(lake.publications.all())
        publication = next((one for one in earlier if not lake.damaged(one, PUBLISHED_KEYS)), None)
    return publication.tables if publication else {}


def view_published(engine: Engine, lake: Lake, name: str, key: str, *, is_on_store: bool = False) -> None:
    """Create a view of the published rows of the table `key`, with the columns of its present contract.

    A column the publication did not have yet is null; before the first publication (`tables_before`) there is no row.
    """
    tables = tables_before(lake)
    address = key if key in tables else MOVED.get(key, key)
    names = tables[address]["files"] if address in tables else []
    if names:
        engine.view(f"{name}_files", (lake.named_addresses if is_on_store else lake.named_files)(address, names))
    had = engine.types(f"{name}_files") if names else {}
    columns = ", ".join(
        f"cast({column.name if column.name in had else 'null'} as {column.type}) as {column.name}"
        for column in load_contract(key).columns
    )
    engine.view_sql(name, f"select {columns} from {name}_files" if names else f"select {columns} where 1 = 0")


def is_copied(warehouse: Warehouse, publication: Publication) -> bool:
    """Whether `marts.duckdb` is of this publication, and unchanged since; on S3 whether the bucket has one too."""
    copy = warehouse.work / DATABASE
    is_ours = copy.is_file() and datetime.fromtimestamp(copy.stat().st_mtime, UTC) == publication.published_at
    return is_ours and (not is_s3(warehouse.settings.warehouse.location) or warehouse.store.exists(DATABASE))


def refuse_altered(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """CheckError for the first file of a public table that changed since it was committed."""
    for key in readable(tables).values():
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
            had = {name: before.tables[key]["files"] for name, key in readable(before.tables).items()}
        write_database(fresh, mart_files(warehouse, publication.tables), had)
        if is_s3(warehouse.settings.warehouse.location):
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
