"""Lines that several files of a delivery have, found by the engine where no machine holds all of them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from pipelines.base.sql import identifier
from pipelines.engine import Engine
from pipelines.ingest.billing.columns import RawFile, snake
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.repeats import ids_of
from pipelines.ingest.billing.select import alike

# Lines with all their values and their id in an earlier file, by their own file and the first of these. Only ids that
# several files have are compared by their values, which most deliveries have none of.
_REPEATS = """
    select stored_name, count(*) as line_count, cast(sum(cost) as decimal(38, 10)) as cost, min(line) as line,
        arg_min(first_name, line) as first_name, arg_min(first_line, line) as first_line
    from (
        select right(delivered_lines.filename, {digits}) as stored_name, file_row_number as line,
            try_cast(cast({billed} as varchar) as decimal(20, 10)) as cost,
            first_value(right(delivered_lines.filename, {digits})) over ({same}) as first_name,
            first_value(file_row_number) over ({same}) as first_line
        from delivered_lines
        join (select right(filename, {digits}) as name_of_ids, row_of_id, id from delivered_ids) as ids
            on name_of_ids = right(delivered_lines.filename, {digits}) and row_of_id = file_row_number
        where id in (select id from delivered_ids group by id having count(distinct filename) > 1)
    ) as lines
    where first_name <> stored_name
    group by stored_name
    order by stored_name
"""


def with_repeats_across(
    raw: RawDelivery, engine: Engine, uri: Callable[[str], str], with_ids: Collection[str]
) -> RawDelivery:
    """The delivery with a warning for each file on lines that an earlier file of the same columns has too.

    `uri` gives the address of a stored file by its name, and of the ids of its lines by `ids/` and its name; `with_ids`
    are the names of files that have ids.
    """
    found: dict[str, str] = {}
    for group in alike([file for file in raw.files if file.name in with_ids]):
        if len(group) > 1:
            engine.scan_files("delivered_lines", [uri(file.name) for file in group])
            engine.scan_files("delivered_ids", [uri(f"ids/{file.name}") for file in group])
            found.update(_repeats(group, raw.delivery.listed.billed, engine))
    files = tuple(
        replace(file, warnings=(*file.warnings, f"{file.key}: {found[file.name]}")) if file.name in found else file
        for file in raw.files
    )
    return replace(raw, files=files)


def write_ids_of(stored: Path, out: Path) -> bool:
    """Write the rows of a stored file, from 0, with their ids to a Parquet file; False where the file has no ids."""
    if not ids_of(stored).exists():
        return False
    ids = np.fromfile(ids_of(stored), dtype=np.int64)
    rows = np.nonzero(ids)[0]
    out.parent.mkdir(exist_ok=True)
    pl.DataFrame({"row_of_id": rows, "id": ids[rows]}).write_parquet(out)
    return True


def _repeats(group: Sequence[RawFile], billed: str, engine: Engine) -> dict[str, str]:
    """By the stored name of a file, a sentence on its lines that an earlier one has too."""
    flat = [column.name for column in group[0].columns if column.form not in ("map", "any", "other")]
    named = {snake(name): identifier(name) for name in reversed(flat)}
    values = ", ".join(["id", *map(identifier, flat)])
    same = f"partition by {values} order by delivered_lines.filename, file_row_number"
    keys = {file.name: file.key for file in group}
    sentences = {}
    for row in engine.rows(_REPEATS.format(digits=len(group[0].name), billed=named[billed], same=same)):
        key, other = keys[row["stored_name"]], keys[row["first_name"]]
        # The header of a csv is its row 1.
        line, first = (number + (1 if key.endswith(".parquet") else 2) for number in (row["line"], row["first_line"]))
        sentences[row["stored_name"]] = (
            f"{row['line_count']:,} lines repeat a line of another file in every value and in its id (first row "
            f"{line}, as row {first} of {other}) and bill {row['cost']:,.2f} more than once; have the month "
            "delivered again."
        )
    return sentences
