"""DuckDB's dialect as Spark SQL with the same values.

sqlglot translates the syntax; this module handles expressions with the same syntax and another meaning.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp

from pipelines.base.errors import EngineError

# Counts the borders of a unit between two moments, as DuckDB does; Spark counts the whole units.
_DATE_DIFF = "TIMESTAMPDIFF({unit}, DATE_TRUNC('{unit}', :since), DATE_TRUNC('{unit}', :until))"
# A row whose value is null does not count.
_EXTREME = "{function}(:value, IF((:value) IS NULL, NULL, :measure))"
# Rounded by the double's own digits in units of the last place; Spark rounds its printed form.
_DOUBLE_AS_DECIMAL = (
    "CAST(CAST(CAST(ROUND(CAST(:value AS DOUBLE) * 1e{scale}) AS BIGINT) AS DECIMAL(20, 0))"
    " * CAST(1e-{scale} AS DECIMAL(38, {scale})) AS {type})"
)
# Rounded, halves of a double to the even neighbor; Spark cuts off.
_DOUBLE_AS_INTEGER = "CAST(RINT(CAST(:value AS DOUBLE)) AS {type})"
_DECIMAL_AS_INTEGER = "CAST(ROUND(CAST(:value AS DECIMAL(38, 10))) AS {type})"
# 0.0005 and 1e+22; Java prints 5.0E-4 and 1.0E22.
_DOUBLE_AS_TEXT = r"""
    CASE
        WHEN NOT CAST(:value AS STRING) RLIKE 'E' THEN CAST(:value AS STRING)
        WHEN ABS(CAST(CAST(:value AS STRING) AS DOUBLE)) >= 1e-4
            AND ABS(CAST(CAST(:value AS STRING) AS DOUBLE)) < 1e16
        THEN REGEXP_REPLACE(
            CAST(CAST(CAST(:value AS STRING) AS DECIMAL(38, 21)) AS STRING), '([.][0-9]+?)0+$', '$1')
        ELSE REGEXP_REPLACE(REGEXP_REPLACE(REGEXP_REPLACE(
            CAST(:value AS STRING), '([.]0)?E', 'e'), 'e([0-9])', 'e+$1'), 'e([+-])([0-9])$', 'e$10$2')
    END
"""

_OPERATIONS = (
    exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Paren, exp.Neg, exp.Abs,
    exp.Sum, exp.Max, exp.Min, exp.Round, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif,
)  # fmt: skip
_DOUBLES = (exp.Div, exp.Avg, exp.Exp, exp.Ln, exp.Log, exp.Sqrt, exp.Pow)
_WHOLE = (exp.Floor, exp.Ceil, exp.Count, exp.RowNumber)
_EXACT = (*_WHOLE, exp.Cast, exp.Literal, exp.Null, exp.Predicate)


def spark_sql(sql: str, *, in_files: bool = False) -> str:
    """A SELECT in DuckDB's dialect as Spark SQL; with `in_files` its rows are partitions of a file each, in its order.

    Raises sqlglot's SqlglotError for text it cannot read or translate, EngineError for a statement
    that is not a SELECT.
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    if not isinstance(tree, exp.Query):
        raise EngineError("That statement gives no rows; write one SELECT.")
    # From the leaves up, so that what stands inside is settled when the outside looks at it.
    for node in reversed(list(tree.find_all(*_REWRITES))):
        # By the type itself: a TRY_CAST is a CAST to sqlglot.
        rewrite = _REWRITES.get(type(node))
        if rewrite:
            node.replace(rewrite(node))
    if in_files:
        tree = _in_files(tree)
    return tree.sql(dialect="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)


def view_name(name: str) -> str:
    """The name of a view in Spark, whose temporary views have no schema."""
    return name.replace(".", "__")


def _in_files(tree: exp.Expr) -> exp.Expr:
    """Rows are spread over as many files as their bytes need, by what they are ordered by, and sorted in each."""
    if tree.args.get("limit") or not tree.args.get("order"):
        return tree
    order = tree.args.pop("order")
    rows = exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier("rows")))
    spread = exp.Anonymous(this="REBALANCE", expressions=[column.copy() for column in order.find_all(exp.Column)])
    tree = exp.select("*").from_(rows).hint(spread)
    tree.set("sort", exp.Sort(expressions=order.expressions))
    return tree


def _schemaless(node: exp.Table | exp.Column) -> exp.Expr:
    if isinstance(node, exp.Table) and node.db:
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        node.set("this", exp.to_identifier(view_name(f"{node.db}.{node.name}")))
    node.set("db", None)
    return node


def _cast(node: exp.Cast) -> exp.Expr:
    """Spark converts doubles and decimals in its own way; the rest is alike."""
    value, kind = node.this, node.to
    name = kind.sql("spark")
    if kind.this in exp.DataType.INTEGER_TYPES:
        ways = {"double": _DOUBLE_AS_INTEGER.format(type=name), "decimal": _DECIMAL_AS_INTEGER.format(type=name)}
    elif kind.is_type(exp.DataType.Type.DECIMAL):
        scale = kind.expressions[1].name if len(kind.expressions) > 1 else 0
        ways = {"double": _DOUBLE_AS_DECIMAL.format(scale=scale, type=name)}
    elif kind.this in exp.DataType.TEXT_TYPES:
        ways = {"double": _DOUBLE_AS_TEXT}
    else:
        return node
    # `try_cast` takes the way of `cast`, every step of which may fail.
    cast = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    ways = {found: way.replace("CAST(", f"{cast}(") for found, way in ways.items()}
    is_double = _is_double(value)
    if isinstance(value, _WHOLE) or (is_double is False and "decimal" not in ways):
        return node
    if is_double:
        return _filled(ways["double"], value=value)
    branches = " ".join(f"WHEN TYPEOF(:value) LIKE '{found}%' THEN {way}" for found, way in ways.items())
    return _filled(f"CASE {branches} ELSE {cast}(:value AS {name}) END", value=value)


def _is_double(node: exp.Expr | None) -> bool | None:
    """Whether an expression is a double; None where that depends on its columns."""
    if (isinstance(node, exp.Cast) and node.is_type(exp.DataType.Type.DOUBLE)) or isinstance(node, _DOUBLES):
        return True
    if node is None or isinstance(node, _EXACT):
        return isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower()
    if isinstance(node, exp.Window | exp.Filter):
        return _is_double(node.this)
    if isinstance(node, exp.Case):
        parts = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, _OPERATIONS):
        parts = list(node.iter_expressions())
    else:
        return None
    found = {_is_double(part) for part in parts}
    return True if True in found else None if None in found else False


def _filled(template: str, **parts: exp.Expr) -> exp.Expr:
    def fill(node: exp.Expr) -> exp.Expr:
        return parts[node.name].copy() if isinstance(node, exp.Placeholder) else node

    return sqlglot.parse_one(template, read="spark").transform(fill)


_REWRITES: dict[type[exp.Expr], Callable] = {
    exp.Table: _schemaless,
    exp.Column: _schemaless,
    exp.DateDiff: lambda node: _filled(
        _DATE_DIFF.format(unit=node.text("unit").upper()), since=node.expression, until=node.this
    ),
    exp.ArgMax: lambda node: _filled(_EXTREME.format(function="MAX_BY"), value=node.this, measure=node.expression),
    exp.ArgMin: lambda node: _filled(_EXTREME.format(function="MIN_BY"), value=node.this, measure=node.expression),
    # Always a double: Spark keeps decimals, cut to few places.
    exp.Div: lambda node: _filled(
        "(CAST(:part AS DOUBLE) / CAST(:whole AS DOUBLE))", part=node.this, whole=node.expression
    ),
    exp.Avg: lambda node: _filled("AVG(CAST(:value AS DOUBLE))", value=node.this),
    # The engines' hashes differ: models only use one to select rows that they then compare by value.
    exp.Anonymous: lambda node: exp.func("XXHASH64", *node.expressions) if node.name.lower() == "hash" else node,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
