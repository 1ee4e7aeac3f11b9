"""What is done with every table: the SELECT that it is written by, and its totals by cost basis and currency."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.engine import Engine

BASES = ("list_cost_usd", "effective_cost_usd", "billed_cost_usd")
CURRENCIES = ("billing_currency", "currency")

Totals = dict[str, dict[str, Decimal]]


def counted(engine: Engine, table: str, columns: Collection[str]) -> tuple[int, Totals]:
    """The rows of a table, and the sum of each cost basis in each currency; no sums without a currency."""
    currency = next((name for name in CURRENCIES if name in columns), None)
    bases = [name for name in BASES if name in columns] if currency else []
    count = "count(*) as row_count"
    if not bases:
        return engine.rows(f"select {count} from {table}")[0]["row_count"], {}
    sums = ", ".join(f'cast(sum("{name}") as decimal(38, 10)) as "{name}"' for name in bases)
    rows = engine.rows(f"select {currency} as unit, {count}, {sums} from {table} group by 1 order by 1")
    totals = {name: {row["unit"]: row[name] for row in rows if row[name] is not None} for name in bases}
    return sum(row["row_count"] for row in rows), totals


def added(parts: Iterable[Totals]) -> Totals:
    """The sum of several totals, currency by currency."""
    whole: Totals = {}
    for part in parts:
        for basis, sums in part.items():
            of_basis = whole.setdefault(basis, {})
            for unit, amount in sums.items():
                of_basis[unit] = of_basis.get(unit, Decimal(0)) + amount
    return whole


def recorded(record: Mapping[str, Mapping[str, str]]) -> Totals:
    """Totals as they were before they were written as JSON."""
    return {basis: {unit: Decimal(amount) for unit, amount in sums.items()} for basis, sums in record.items()}


def written_select(columns: Sequence[tuple[str, str]], key: Sequence[str], source: str) -> str:
    """The rows of the SELECT `source` as `columns` (name and type), ordered by `key`, or by all columns without one."""
    casts = ", ".join(f'cast("{name}" as {kind}) as "{name}"' for name, kind in columns)
    order = ", ".join(f'"{name}"' for name in key or [name for name, _ in columns])
    return f"select {casts} from ({source}) as made_rows order by {order}"
