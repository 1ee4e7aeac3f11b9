"""What the last publication shows, as a model may read it beside what is being built."""

from __future__ import annotations

from pipelines.engine import Engine
from pipelines.models.catalog import PUBLISHED
from pipelines.models.contract import load_contract
from pipelines.warehouse.lake import Lake


def view_published(engine: Engine, lake: Lake, name: str, key: str) -> None:
    """Name the published rows of the table `key` in an engine, under the columns of its contract of today.

    A column the publication did not have yet is null; before the first publication there is no row. Where its files
    are gone or cut short, the newest one before it speaks that has all of what is read of a publication.
    """
    from pyarrow import parquet

    publication = lake.current()
    if publication and lake.damaged(publication, PUBLISHED.values()):
        earlier = reversed(lake.publications())
        publication = next((told for told in earlier if not lake.damaged(told, PUBLISHED.values())), None)
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
