"""The SELECT that a table is written by: its columns cast to the types of its contract, its rows in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence


def written_select(columns: Sequence[tuple[str, str]], key: Sequence[str], source: str) -> str:
    """The rows of the SELECT `source` as `columns` (name and type), ordered by `key`, or by all columns without one."""
    casts = ", ".join(f'cast("{name}" as {kind}) as "{name}"' for name, kind in columns)
    order = ", ".join(f'"{name}"' for name in key or [name for name, _ in columns])
    return f"select {casts} from ({source}) as made_rows order by {order}"
