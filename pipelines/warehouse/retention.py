"""What a warehouse may forget: publications by rule, files that none names, log entries behind a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from pipelines.warehouse.publication import Publication
from pipelines.warehouse.storage import Object

# A data file's name, as `lake` describes it.
DATA_FILE = r"[0-9a-f]{16}-(?:[0-9a-f]{16}\.)?[0-9a-f]{16}\.parquet"
_DATA = re.compile(rf"tables/(\w+/\w+)/({DATA_FILE})")
_LOG = re.compile(r"tables/(\w+/\w+)/_delta_log/(\d{20})\.(?:json|checkpoint\.parquet)")
# Entries of a table's log that are kept before a checkpoint takes their place.
_MOST_ENTRIES = 20


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be: publications by number, other files, and their bytes."""

    publications: tuple[int, ...]
    kept_count: int
    file_count: int
    byte_count: int


def kept(publications: Sequence[Publication], now: datetime, days: int, named: Collection[int]) -> list[Publication]:
    """Of publications, oldest first: all of the last `days`, the last of each calendar month (UTC), those `named`."""
    month_ends = {
        [*group][-1].number for _, group in groupby(publications, key=lambda one: one.published_at.strftime("%Y-%m"))
    }
    since = now - timedelta(days=days)
    wanted = month_ends | {*named}
    return [one for one in publications if one.published_at >= since or one.number in wanted]


def named_files(publications: Iterable[Publication]) -> set[tuple[str, str]]:
    """The files that publications, and the packs of them, consist of, each by its table and name."""
    return {
        (table, name)
        for one in publications
        for part in (one.tables, one.raw, one.before)
        for table, held in part.items()
        for name in held["files"]
    }


def unnamed(items: Iterable[Object], named: Collection[tuple[str, str]]) -> list[Object]:
    """The data files among stored objects that nothing names."""
    return [item for item in items if (found := _DATA.fullmatch(item.key)) and found.groups() not in named]


def logs(items: Iterable[Object]) -> dict[str, dict[int, list[Object]]]:
    """The log entries and checkpoints of each table, by version."""
    found: dict[str, dict[int, list[Object]]] = {}
    for item in items:
        if match := _LOG.fullmatch(item.key):
            found.setdefault(match[1], {}).setdefault(int(match[2]), []).append(item)
    return found


def is_long(entries: Collection[int]) -> bool:
    """Whether the entries of a log are to be replaced by a checkpoint."""
    return len(entries) > _MOST_ENTRIES
