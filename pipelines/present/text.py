"""Texts in a terminal, each from a template of dashboards/: what a build prints last, a comparison, notices."""

from collections.abc import Mapping
from functools import cache
from inspect import unwrap
from itertools import groupby
from typing import Any

import jinja2
import polars as pl
import yaml

from pipelines.base import resources
from pipelines.base.console import Console, printable
from pipelines.base.errors import counted
from pipelines.engine import Engine
from pipelines.present.formats import formats

# Where the basis of a figure stands in its line.
_BASIS_AT = 41


def show_key_figures(engine: Engine, console: Console) -> None:
    """Print the bill and key figures with their basis, in each currency of the bills."""
    queries = yaml.safe_load((resources.DASHBOARDS / "figures.yml").read_text(encoding="utf-8"))
    for line in _lines("figures.txt.j2", {name: engine.query(sql).to_dicts() for name, sql in queries.items()}):
        console.say(line, hang=_BASIS_AT)


def show_text(template: str, rows: Mapping[str, Any], console: Console, *, has_figures: bool = False) -> None:
    """Print the lines of a template; those with tabs between their cells are a table, the first one its head.

    With figures, all columns of a table but the first have them, flush right.
    """
    for is_table, lines in groupby(_lines(template, rows), key=lambda line: "\t" in line):
        if is_table:
            head, *cells = (line.split("\t") for line in lines)
            frame = pl.DataFrame(cells, schema=dict.fromkeys(head, pl.String), orient="row")
            console.table(frame, figures=head[1:] if has_figures else None)
        else:
            for line in lines:
                console.paragraph(line) if line else console.say("")


def _lines(template: str, rows: Mapping[str, Any]) -> list[str]:
    return templates().get_template(template).render(_printable(rows)).splitlines()


@cache
def templates() -> jinja2.Environment:
    """The templates of texts, which have no marks of what is unknown; those of pages bring the library of charts."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.DASHBOARDS), trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {name: unwrap(form) for name, form in formats().items()} | {"counted": counted}
    return environment


def _printable(value: Any) -> Any:
    """Rows whose texts have neither tabs nor ends of lines."""
    if isinstance(value, Mapping):
        return {name: _printable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_printable(one) for one in value]
    return printable(value) if isinstance(value, str) else value
