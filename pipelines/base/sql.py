"""Literals and identifiers of SQL."""

from functools import lru_cache
from pathlib import Path

NUL = "\0"


def quoted(name: str | Path) -> str:
    """A string literal."""
    text = "'" + str(name).replace("'", "''") + "'"
    # A query ends at a NUL, wherever it is.
    return f"""({text.replace(NUL, "' || chr(0) || '")})""" if NUL in text else text


def identifier(name: str) -> str:
    """A quoted identifier: the names of columns come from delivered files and may contain anything."""
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=1024)
def tables_in(sql: str) -> tuple[str, ...]:
    """The tables a SELECT in DuckDB's dialect reads, in the order met, its own CTEs left out."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, read="duckdb")
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    named = (table.name for table in tree.find_all(exp.Table))
    return tuple(dict.fromkeys(name for name in named if name and name not in ctes))
