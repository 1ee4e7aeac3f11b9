"""All tables and their inputs, read from the files that make them and declared nowhere else.

A table is made by one file of its name: a SELECT below sql/<layer>/, a list in sql/reference/, or a Polars
function in pipelines/transforms/. Its inputs are the tables its text names.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pipelines.transforms
from pipelines.base import resources
from pipelines.base.code import code_digest
from pipelines.base.errors import UsageError
from pipelines.base.parse_cache import digest_of, kept
from pipelines.base.sql import tables_in
from pipelines.ingest.billing.columns import LISTS
from pipelines.models.contract import load_contract
from pipelines.models.session import CREATED

if TYPE_CHECKING:
    import polars as pl

Grain = Literal["source", "month", "whole"]

# Delivered bills are read in place; the tracker tables are written by their source.
BILLS = tuple(listed.table for listed in LISTS)
TRACKER = ("run", "attempt", "resource", "phase", "epoch", "checkpoint", "evaluation", "unread_run")
RAW_TABLES = tuple(f"tracker_{thing}" for thing in TRACKER)
# Servers and their traffic, registrations of comparisons, and what AWS or files report besides the bill, likewise.
SERVING_TABLES = ("serving_server", "serving_traffic")
PROOF_TABLES = ("proof_registration", "proof_run")
RESERVATIONS, COMMITMENTS = "aws_capacity_reservation", "aws_commitment"
INVOICES, OFFERS = "aws_invoice", "aws_capacity_offer"
# Tables of the last publication by the table they come from; empty before the first.
PUBLISHED = {
    "published_baseline": "detail/detail_baseline",
    "published_figure_cost": "core/fct_figure_cost",
    "published_restatement": "core/fct_restatement",
    "published_restated_figure": "detail/detail_restated_figure",
}
# Where publications before version 0.2.0 keep a table of PUBLISHED.
MOVED = {"detail/detail_restated_figure": "core/fct_restated_figure"}
# Columns that publications before version 0.2.0 lack, by their table.
ADDED = {
    "marts/mart_restatement": (
        "new_day_count",
        "restated_day_count",
        "restated_effective_change_usd",
        "restated_billed_change_usd",
    ),
}
PUBLISHED_KEYS = (*PUBLISHED.values(), *MOVED.values())
# Created by the session of a build, so no step of it makes them.
SESSION_TABLES = CREATED | {*PUBLISHED}
INPUT_TABLES = frozenset(
    {*BILLS, RESERVATIONS, COMMITMENTS, INVOICES, OFFERS, *RAW_TABLES, *SERVING_TABLES, *PROOF_TABLES, *SESSION_TABLES}
)
# Raw tables that we write ourselves, by their address in the warehouse.
WRITTEN_RAW = tuple(sorted(f"raw/{name}" for name in INPUT_TABLES - SESSION_TABLES - {*BILLS}))
LAYERS = ("reference", "staging", "core", "detail", "marts")
# The layers that users query, by the schema each is published in.
SCHEMAS = {"marts": "mart", "detail": "detail"}

# Prefixes of the modules of pipelines/transforms that make a table.
_TABLES = {"fct_": "core", "dim_": "core", "detail_": "detail", "mart_": "marts"}
_GRAINS: dict[str, Grain] = {"": "whole", "billing_period": "month", "billing_period, source_name": "source"}
_HEADER = re.compile(r"^--\s*(?P<key>stored|partition):\s*(?P<value>[\w, ]+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Model:
    """One table and how it is made.

    `grain` is "month" when the table is replaced one billing month at a time, "source" when it is so for each billing
    source apart, else "whole".
    `stored` is False for a view that is computed where it is read.
    `code` is the digest of a transform and of every module of ours that it reaches; empty for other kinds.
    """

    layer: str
    name: str
    kind: Literal["sql", "reference", "transform"]
    path: Path
    text: str
    inputs: tuple[str, ...]
    grain: Grain
    stored: bool = True
    code: str = ""

    def transform(self, query: Callable[[str], pl.DataFrame]) -> pl.DataFrame:
        """Run a Polars transform over its inputs: whole tables, or the SELECT that its QUERIES has for a table.

        A transform that returns rows by column gets the types of its contract.
        """
        module = importlib.import_module(module_of(self.name))
        queries: dict[str, str] = getattr(module, "QUERIES", {})
        made = module.build(**{name: query(queries.get(name, f"select * from {name}")) for name in self.inputs})
        return load_contract(self.key).frame(made) if isinstance(made, list) else made

    @property
    def key(self) -> str:
        """`layer/name`, the table's address in the warehouse."""
        return f"{self.layer}/{self.name}"


class Catalog:
    """Every model by name, in an order in which inputs come first."""

    def __init__(self, models: list[Model]):
        self._models = {model.name: model for model in models}
        self._resting: dict[str, list[str]] = {}
        self._behind: dict[str, set[str]] = {}

    def __getitem__(self, name: str) -> Model:
        try:
            return self._models[name]
        except KeyError:
            raise UsageError(f"There is no table {name}; `trainledger query` lists them.") from None

    def __contains__(self, name: object) -> bool:
        return name in self._models

    def layer(self, layer: str) -> list[Model]:
        """The models of one layer, by name."""
        return sorted((m for m in self._models.values() if m.layer == layer), key=lambda model: model.name)

    @property
    def public(self) -> list[Model]:
        """The tables that users query: the marts, then their drill-downs."""
        return [model for layer in SCHEMAS for model in self.layer(layer)]

    @property
    def ordered(self) -> list[Model]:
        """All models, inputs before the tables made from them."""
        inputs = {name: sorted({*self._models[name].inputs} & {*self._models}) for name in sorted(self._models)}
        return [self._models[name] for name in TopologicalSorter(inputs).static_order()]

    def behind(self, name: str) -> set[str]:
        """Every table that a table rests on, directly or not."""
        if name not in self._behind:
            inputs = self[name].inputs if name in self else ()
            self._behind[name] = {*inputs}.union(*map(self.behind, inputs))
        return self._behind[name]

    def resting_on(self, model: Model) -> list[str]:
        """Everything a change of which changes `model` or what its checks find: its inputs, the tables its checks read,
        and those of the views among them."""
        if model.name not in self._resting:
            found: dict[str, None] = {}
            # A view has no checks of its own.
            for name in (*model.inputs, *(load_contract(model.key).reads if model.stored else ())):
                found[name] = None
                if name in self and not self[name].stored:
                    found.update(dict.fromkeys(self.resting_on(self[name])))
            self._resting[model.name] = list(found)
        return self._resting[model.name]


@cache
def load_catalog() -> Catalog:
    """The catalog of this installation, parsed once for each state of its files."""
    transforms = sorted(Path(pipelines.transforms.__path__[0]).glob("*.py"))
    names = [path.stem for path in transforms if path.stem.startswith(tuple(_TABLES))]
    code = {name: code_digest(module_of(name)) for name in names}
    parts = (digest_of(resources.SQL, "*.sql"), sorted(code.items()), code_digest(__name__), version("sqlglot"))

    def parse() -> dict[str, Any]:
        paths = [(layer, path) for layer in LAYERS[1:] for path in sorted((resources.SQL / layer).rglob("*.sql"))]
        return {
            "sql": [[layer, path.relative_to(resources.SQL).as_posix(), *_parsed(path)] for layer, path in paths],
            "transforms": [[name, importlib.import_module(module_of(name)).INPUTS] for name in names],
        }

    parsed = kept("models", parts, parse)
    models = [
        Model("reference", path.stem, "reference", path, path.read_text(encoding="utf-8"), (), "whole")
        for path in sorted(resources.REFERENCE.glob("*.csv"))
    ]
    models += [
        Model(layer, Path(path).stem, "sql", resources.SQL / path, text, tuple(inputs), grain, stored)
        for layer, path, text, inputs, grain, stored in parsed["sql"]
    ]
    # A transform module has its inputs as INPUTS and makes its table by `build(**inputs)`.
    for name, inputs in parsed["transforms"]:
        path = Path(pipelines.transforms.__path__[0]) / f"{name}.py"
        layer = next(layer for prefix, layer in _TABLES.items() if name.startswith(prefix))
        text = path.read_text(encoding="utf-8")
        models.append(Model(layer, name, "transform", path, text, tuple(inputs), "whole", code=code[name]))
    return Catalog(models)


def module_of(name: str) -> str:
    """The module of the transform that makes a table."""
    return f"pipelines.transforms.{name}"


def _parsed(path: Path) -> tuple[str, Sequence[str], Grain, bool]:
    """Of a SELECT: the text with metrics and functions in place of their calls, inputs, grain, whether it is stored."""
    from pipelines.models.expressions import expand_calls

    text = path.read_text(encoding="utf-8")
    header = {found["key"]: found["value"] for found in _HEADER.finditer(text)}
    sql = expand_calls(text, path)
    grain = _GRAINS[header.get("partition", "")]
    return sql, tables_in(sql), grain, header.get("stored") != "no"
