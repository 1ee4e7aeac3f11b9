"""What building a table came to, and the records of it: one file per table, with an entry for each of its months."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.base.parse import parse_json
from pipelines.models.validate import CheckResult
from pipelines.models.written import Totals, recorded
from pipelines.warehouse.storage import Store


@dataclass(frozen=True)
class Built:
    """What one table, or one month of it, came to; totals by cost basis and currency."""

    table: str
    period: str | None
    fingerprint: str
    row_count: int
    totals: Totals
    checks: list[CheckResult]
    was_current: bool

    @property
    def failures(self) -> list[CheckResult]:
        """The `error` checks that did not pass."""
        return [check for check in self.checks if check.severity == "error" and not check.passed]


class BuildRecords:
    """What the last build of each table came to; a damaged record counts as none, and the table is built again."""

    def __init__(self, store: Store):
        self._store = store
        self._entries: dict[str, dict[str, Any]] = {}

    def find(self, table: str, period: str | None, fingerprint: str) -> Built | None:
        """The record of a table, or one month of it, made from what `fingerprint` stands for."""
        if table not in self._entries:
            key = _key(table)
            self._entries[table] = _entries_of(self._store.read(key) if self._store.exists(key) else None)
        found = _as_built(self._entries[table].get(_entry(period)))
        return found if found and found.fingerprint == fingerprint else None

    def write(self, built: Sequence[Built]) -> None:
        """Record what one table, or several months of it, came to; the records of its other months stay."""
        (table,) = {made.table for made in built}
        added = parse_json(json.dumps({_entry(made.period): _as_json(made) for made in built}, default=str))

        def merged(data: bytes | None) -> bytes:
            # Another build may have recorded other months since.
            self._entries[table] = _entries_of(data) | added
            return json.dumps(self._entries[table], sort_keys=True).encode()

        self._store.update(_key(table), merged)


def _entries_of(data: bytes | None) -> dict[str, Any]:
    try:
        entries = parse_json(data or b"{}")
    except ValueError:
        return {}
    return entries if isinstance(entries, dict) else {}


def _key(table: str) -> str:
    return f"checks/{table}.json"


def _entry(period: str | None) -> str:
    return period or "whole"


def _as_built(entry: Any) -> Built | None:
    try:
        checks = [CheckResult(**check) for check in entry["checks"]]
        totals = recorded(entry["totals"])
        return Built(**entry | {"checks": checks, "totals": totals, "was_current": True})
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None


def _as_json(built: Built) -> dict[str, Any]:
    return built.__dict__ | {"checks": [check.__dict__ for check in built.checks]}
