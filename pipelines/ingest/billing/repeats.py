"""Repeated lines in one delivery, whose ids AWS gives once (facts aws-billing 1.3).

Only lines with an id of another line are compared, for two lines are the same only if all their values are; maps are
not compared. Exports without ids are not checked, for there equal lines may be two charges.
"""

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from pipelines.base.errors import SourceError, counted
from pipelines.base.sql import identifier
from pipelines.engine import Engine
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.billing.columns import RawFile, snake
from pipelines.ingest.billing.identities import ids_of
from pipelines.ingest.billing.select import alike

# Ids that are compared at once; of more, each such part is a pass over all of them.
_MOST_AT_ONCE = 1 << 24
_REPEATED = "select id from delivered_ids where id <> 0 group by id having count(*) > 1"
# By file the lines that repeat one of its own, then those that repeat one of an earlier file.
_REPEATS = """
    with line as (
        select right(delivered_lines.filename, {digits}) as stored_name, file_row_number as line,
            try_cast(cast({billed} as varchar) as decimal(20, 10)) as cost,
            count(*) over ({own}) as alike_count,
            min(file_row_number) over ({own}) as own_line,
            first_value(right(delivered_lines.filename, {digits})) over ({every}) as first_name,
            first_value(file_row_number) over ({every}) as first_line
        from delivered_lines
        join (
            select right(filename, {digits}) as name_of_ids, file_row_number as row_of_id, id
            from delivered_ids where id in ({repeated})
        ) as ids on name_of_ids = right(delivered_lines.filename, {digits}) and row_of_id = file_row_number
    )
    select stored_name, stored_name as first_name, count(*) as line_count, cast(sum(cost) as decimal(38, 10)) as cost,
        min(line) as line, arg_min(own_line, line) as first_line,
        count(*) + count(distinct own_line) as alike_count
    from line where line <> own_line group by stored_name
    union all
    select stored_name, arg_min(first_name, line), count(*), cast(sum(cost) as decimal(38, 10)),
        min(line), arg_min(first_line, line), 0
    from line where first_name <> stored_name group by stored_name
    order by stored_name, alike_count desc
"""


def with_repeats_here(
    files: Sequence[RawFile], folder: Path, billed: str, uri: Callable[[str], str]
) -> tuple[RawFile, ...]:
    """`with_repeats` of files in a folder; most deliveries need no engine for it. Removes the ids."""
    with_ids = [file.name for file in files if ids_of(folder / file.name).exists()]
    if _is_any_repeated([ids_of(folder / name) for name in with_ids]):
        for name in with_ids:
            write_ids_of(folder / name, folder / "ids" / name)
        with TemporaryDirectory(prefix="trainledger-") as spill, DuckDBEngine(spill=Path(spill)) as engine:
            files = with_repeats(files, billed, with_ids, engine, folder.joinpath, uri)
        shutil.rmtree(folder / "ids")
    for name in with_ids:
        ids_of(folder / name).unlink(missing_ok=True)
    return tuple(files)


def _is_any_repeated(ids: Sequence[Path]) -> bool:
    """Whether several lines have one id; several times as fast as an engine."""
    count = sum(file.stat().st_size for file in ids) // np.dtype(np.uint64).itemsize
    parts = -(-count // _MOST_AT_ONCE)
    for part in range(parts):
        found = (pl.Series(np.fromfile(file, dtype=np.uint64)) for file in ids)
        share = pl.concat([numbers.filter((numbers != 0) & (numbers % parts == part)) for numbers in found])
        if share.n_unique() < len(share):
            return True
    return False


def with_repeats(
    files: Sequence[RawFile],
    billed: str,
    with_ids: Collection[str],
    engine: Engine,
    stored: Callable[[str], Path | str],
    uri: Callable[[str], str],
) -> tuple[RawFile, ...]:
    """The records of files, each with a warning on lines that repeat its own, and on those of an earlier file.

    `stored` gives where a file is by its name, and the ids of its lines by `ids/` and its name; `with_ids` are the
    names of files that have ids. SourceError, naming the file by the `uri` of its key, where all of it is repeated.
    """
    found: dict[str, list[str]] = {}
    for group in alike([file for file in files if file.name in with_ids]):
        engine.scan_files("delivered_lines", [stored(file.name) for file in group])
        engine.scan_files("delivered_ids", [stored(f"ids/{file.name}") for file in group])
        if engine.rows(f"{_REPEATED} limit 1"):
            for name, sentence in _repeats(group, billed, engine, uri):
                found.setdefault(name, []).append(sentence)
    return tuple(
        replace(file, warnings=(*file.warnings, *(f"{file.key}: {each}" for each in found.get(file.name, ()))))
        for file in files
    )


def write_ids_of(stored: Path, out: Path) -> bool:
    """Write the ids of the lines of a stored file to a Parquet file; False where it has none."""
    if not ids_of(stored).exists():
        return False
    out.parent.mkdir(exist_ok=True)
    pl.DataFrame({"id": np.fromfile(ids_of(stored), dtype=np.int64)}).write_parquet(out)
    return True


def _repeats(
    group: Sequence[RawFile], billed: str, engine: Engine, uri: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """The stored name of a file and a sentence on lines of it that are repeated."""
    flat = [one.name for one in group[0].columns if one.form not in ("map", "any", "other") or one.type == "bool"]
    named = {snake(name): f"delivered_lines.{identifier(name)}" for name in reversed(flat)}
    own = ", ".join(["partition by ids.id", *(f"delivered_lines.{identifier(name)}" for name in flat)])
    every = f"{own} order by delivered_lines.filename, file_row_number"
    digits, keys = len(group[0].name), {file.name: file.key for file in group}
    counts = f"select right(filename, {digits}) as name, count(*) as lines from delivered_ids where id <> 0 group by 1"
    line_counts = {row["name"]: row["lines"] for row in engine.rows(counts)}
    windows = {"own": f"{own}, delivered_lines.filename", "every": every}
    for row in engine.rows(_REPEATS.format(digits=digits, billed=named[billed], repeated=_REPEATED, **windows)):
        name, key, other = row["stored_name"], keys[row["stored_name"]], keys[row["first_name"]]
        # The header of a csv is its row 1.
        line, first = (number + (1 if key.endswith(".parquet") else 2) for number in (row["line"], row["first_line"]))
        count, cost = row["line_count"], f"{row['cost']:,.2f}"
        repeat, bill = counted(count, "line", "repeat"), "bills" if count == 1 else "bill"
        finding = f"in every value and in its id (first row {line}, as row {first}"
        if other != key:
            finding = f"{repeat} a line of another file {finding} of {other}) and {bill} {cost}"
            yield name, f"{finding} more than once; have the month delivered again."
        elif row["alike_count"] < line_counts[name]:
            finding = f"{repeat} another line {finding}) and {bill} {cost}"
            yield name, f"{finding} more than once; have the file delivered again."
        else:
            finding = f"all its {line_counts[name]:,} lines repeat another line {finding}) and bill {cost}"
            raise SourceError(f"{uri(key)}: {finding} twice; have the file delivered again.")
