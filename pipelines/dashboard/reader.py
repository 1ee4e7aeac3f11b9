"""Publications opened for reading: the current one by default, an earlier one on request."""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl
import yaml

from pipelines.base import resources
from pipelines.config.access import Teams
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.render import Row, answers, queries_of
from pipelines.warehouse.publication import Publication

APP = resources.DASHBOARDS / "app"
# Each open one holds memory: of publications and teams of readers, more than these are seldom read side by side.
_KEPT = 8
# Drawings and explanations kept of each, some tens of kilobytes apiece.
_MOST_KEPT = 500
_NAME = re.compile(r"\$(\w+)")


@dataclass
class Volume:
    """One publication, open, as a reader of `teams` sees it.

    Queries wait for each other: a connection answers one at a time.
    """

    warehouse: Warehouse
    published: Publication
    engine: DuckDBEngine
    teams: Teams = None
    turn: Lock = field(default_factory=Lock)
    _kept: dict[Any, Any] = field(default_factory=dict)

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made under this key before, or is made now: of one publication it does not change."""
        found = self._kept.get(key)
        if found is None:
            found = make()
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """The rows of one SELECT; `values` stand for the names that follow a dollar sign in it."""
        return self.frame(sql, **values).to_dicts()

    def frame(self, sql: str, **values: Any) -> pl.DataFrame:
        with self.turn:
            return self.engine.query(sql, _used(sql, values))

    def page(self, name: str, values: Mapping[str, Any] | None = None, **parts: str) -> dict[str, Any]:
        """The rows of each query of `dashboards/app/NAME.yml` by its name, and `missing`, the marts that are not there.

        `parts` stand for the names in braces: they are pieces of SQL of ours, never what a reader typed.
        """
        path = APP / f"{name}.yml"
        queries = queries_of(yaml.safe_load(path.read_text(encoding="utf-8")))
        for part, sql in parts.items():
            queries = {key: text.replace(f"{{{part}}}", sql) for key, text in queries.items()}
        with self.turn:
            rows, missing = answers(
                path, queries, lambda sql: self.engine.query(sql, _used(sql, values or {})), self.published
            )
        return {**rows, "missing": missing}


def _used(sql: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _NAME.findall(sql)}


class Reader:
    def __init__(self, warehouse: Warehouse):
        self.warehouse = warehouse
        self._open: OrderedDict[tuple[int, Teams], Volume] = OrderedDict()
        self._turn = Lock()

    def read(self, as_of: str | None = None, teams: Teams = None) -> Volume:
        """The newest publication or that of a date, as a reader of `teams` sees it.

        UsageError where there is none, or for what is no date.
        """
        published = published_of(self.warehouse, as_of or None)
        key = (published.number, teams)
        with self._turn:
            volume = self._open.pop(key, None)
            if volume is None:
                volume = Volume(self.warehouse, published, open_marts(self.warehouse, published, teams), teams)
            self._open[key] = volume
            while len(self._open) > _KEPT:
                # Not closed: another request may still read it.
                self._open.popitem(last=False)
        return volume


def text_of(name: str) -> str:
    """A file of `dashboards/app/`, as it is sent to a browser."""
    shared = (resources.DASHBOARDS / "page.css").read_text(encoding="utf-8") if name == "app.css" else ""
    return shared + Path(APP / name).read_text(encoding="utf-8")
