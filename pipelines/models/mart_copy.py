"""Keeps `marts.duckdb`, the disposable copy of the published marts for DuckDB and BI clients.

A build replaces in it what changed: a mart, or the months of one that is kept by month. A record next to it names
the files it was made from; where the record is missing, or the copy was changed since, all of it is written again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.base.errors import CheckError, UsageError
from pipelines.base.parse import parse_json
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.marts import mart_files, qualified
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.publication import Publication

DATABASE = "marts.duckdb"
_RECORD = f".{DATABASE}.json"
# The months of a mart, each with the names of its files; under an empty text those of one without months.
Slices = dict[str, list[str]]
# Rows that are replaced leave gaps: a copy larger than twice its first size and this many bytes is written anew.
_SPARE_BYTES = 64 << 20


def is_copied(warehouse: Warehouse, publication: Publication) -> bool:
    """Whether `marts.duckdb` is of this publication, as far as this machine knows."""
    copy = warehouse.work / DATABASE
    return copy.is_file() and copy.stat().st_mtime >= publication.published_at.timestamp()


def write_copy(warehouse: Warehouse, publication: Publication) -> None:
    """Replace `marts.duckdb` by a copy of a publication."""
    show_copy(warehouse, stage_copy(warehouse, publication.tables))


def stage_copy(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> Path:
    """The copy of these tables, whole but not yet visible. SourceError names a file of a mart that cannot be read."""
    place = warehouse.work / DATABASE
    if place.is_dir():
        raise UsageError(f"{place} is a folder; move it away, the copy for DuckDB clients is written there.")
    fresh = warehouse.staging / DATABASE
    fresh.parent.mkdir(parents=True, exist_ok=True)
    wanted = _slices(warehouse, tables)
    before = _record_of(warehouse)
    if before and place.stat().st_size <= 2 * before["written_bytes"] + _SPARE_BYTES:
        shutil.copyfile(place, fresh)
        _change(warehouse, fresh, before["slices"], wanted)
        written_bytes = before["written_bytes"]
    else:
        from pipelines.engine.duckdb import write_database

        write_database(fresh, mart_files(warehouse, tables))
        written_bytes = fresh.stat().st_size
    record = {"slices": wanted, "written_bytes": written_bytes, "pseudonyms": warehouse.pseudonyms.seal}
    fresh.with_name(_RECORD).write_text(json.dumps(record), encoding="utf-8")
    return fresh


def show_copy(warehouse: Warehouse, fresh: Path) -> None:
    """Make a staged copy the visible one."""
    if warehouse.settings.warehouse.location.startswith("s3://"):
        warehouse.store.upload(fresh, DATABASE)
    # Written before its publication, it is as new.
    fresh.touch()
    copy, staged = warehouse.work / DATABASE, fresh.with_name(_RECORD)
    record = parse_json(staged.read_text(encoding="utf-8")) | {"copy": _state(fresh)}
    staged.write_text(json.dumps(record), encoding="utf-8")
    fresh.replace(copy)
    staged.replace(copy.with_name(_RECORD))


def _slices(warehouse: Warehouse, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Slices]:
    """By the `schema.name` of each public table, its files of each month."""
    found = {}
    for model in load_catalog().public:
        if model.key in tables:
            named = set(tables[model.key]["files"])
            by_month = warehouse.lake.names(model.key)
            is_newest = named == {name for names in by_month.values() for name in names}
            found[qualified(model.name)] = (
                {period or "": names for period, names in by_month.items()} if is_newest else {"": sorted(named)}
            )
    return found


def _change(warehouse: Warehouse, copy: Path, before: Mapping[str, Slices], wanted: Mapping[str, Slices]) -> None:
    """Replace in a copy what is not as wanted."""
    from pipelines.engine.duckdb import change_database

    lake, catalog = warehouse.lake, load_catalog()
    whole: dict[str, Sequence[Path]] = {}
    months: dict[str, dict[str, Sequence[Path]]] = {}
    for name, slices in wanted.items():
        key, known = catalog[name.partition(".")[2]].key, before.get(name, {})
        changed = [month for month in {**known, **slices} if known.get(month) != slices.get(month)]
        kept = [file for month, files in slices.items() if month not in changed for file in files]
        # A damaged file that is copied fails to be read; the files behind rows that stay are compared here.
        for file in lake.altered(key, kept):
            raise CheckError(
                f"{file} changed after publishing; remove it and run `trainledger build`, which makes it again."
            )
        # Where no month stays, the columns may have changed too.
        has_months = len(changed) < len(slices) and "" not in {**known, **slices} and "billing_period" in _columns(key)
        if changed and has_months:
            months[name] = {month: lake.named_files(key, slices.get(month, [])) for month in changed}
        elif changed:
            whole[name] = lake.named_files(key, [file for files in slices.values() for file in files])
    change_database(copy, whole, months, set(before) - set(wanted))


def _columns(key: str) -> set[str]:
    return {column.name for column in load_contract(key).columns}


def _record_of(warehouse: Warehouse) -> dict[str, Any] | None:
    """What the copy was made from; None where that is not known of the copy as it is now."""
    copy = warehouse.work / DATABASE
    try:
        record = parse_json(copy.with_name(_RECORD).read_text(encoding="utf-8"))
        # The gaps of a copy still hold the rows that were replaced: none of them may name who is a pseudonym now.
        # An older version kept every table in the schema `mart`.
        has_schemas = all("." in name for name in record["slices"])
        is_usable = has_schemas and record["copy"] == _state(copy) and record["pseudonyms"] == warehouse.pseudonyms.seal
        return record if is_usable and record["slices"] and record["written_bytes"] else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _state(copy: Path) -> list[int]:
    seen = copy.stat()
    return [seen.st_size, seen.st_mtime_ns]
