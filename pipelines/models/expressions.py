"""Puts the expressions of sql/metrics and sql/functions in place of their calls.

A metric takes no arguments and is an aggregate, so it is right at every grain; a function names its
arguments in an `-- args:` line and reads nothing else. An argument whose columns it reads (`line.service`) is a row:
the call passes the alias of a table. Each lives in the file of its name, and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from pipelines.base import resources
from pipelines.base.errors import UsageError

_ARGS = re.compile(r"^--\s*args:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Expression:
    """A named SQL expression and the arguments it is written over."""

    name: str
    path: Path
    args: tuple[str, ...]
    text: str

    @cached_property
    def tree(self) -> exp.Expr:
        """The parsed text; to parse all of them takes longer than most commands."""
        return sqlglot.parse_one(self.text, read="duckdb")


@cache
def load_expressions() -> dict[str, Expression]:
    """Every metric and function by name."""
    paths = [*(resources.SQL / "metrics").glob("*.sql"), *(resources.SQL / "functions").glob("*.sql")]
    return {path.stem: _load(path) for path in sorted(paths)}


@lru_cache(maxsize=1024)
def expand_calls(sql: str, path: Path) -> str:
    """The SELECT with every metric and function call replaced by its expression, in DuckDB's dialect."""
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except ParseError as error:
        raise UsageError(f"{path} is not one SELECT in DuckDB's dialect: {str(error).splitlines()[0]}") from None
    return tree.transform(_expanded).sql(dialect="duckdb", pretty=True, comments=False)


def _load(path: Path) -> Expression:
    text = path.read_text(encoding="utf-8")
    found = _ARGS.search(text)
    args = tuple(name.strip() for name in found[1].split(",")) if found else ()
    return Expression(path.stem, path, args, text)


def _expanded(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous):
        return node
    expression = load_expressions().get(node.name.lower())
    if expression is None:
        return node
    if len(node.expressions) != len(expression.args):
        wanted = ", ".join(expression.args) or "no arguments"
        raise UsageError(f"{expression.name} takes {wanted}; fix the call {node.sql(dialect='duckdb')}.")
    arguments = dict(zip(expression.args, node.expressions, strict=True))

    def filled(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or (part.table or part.name) not in arguments:
            return part
        if part.table:
            return exp.column(part.name, table=arguments[part.table].name)
        return _enclosed(arguments[part.name].copy())

    # An expression may itself call others.
    return _enclosed(expression.tree.copy().transform(filled).transform(_expanded))


def _enclosed(node: exp.Expr) -> exp.Expr:
    """Parentheses where the surroundings could bind tighter than the node."""
    stands_alone = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren)
    return node if stands_alone and not isinstance(node, exp.Connector) else exp.paren(node)
