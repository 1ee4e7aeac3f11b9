"""What is done with every table: the SELECT that it is written by, and what one scan of it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pipelines.engine import Engine

BASES = ("list_cost_usd", "effective_cost_usd", "billed_cost_usd")
CURRENCIES = ("billing_currency", "currency")

Totals = dict[str, dict[str, Decimal]]


class Counted(NamedTuple):
    """The rows of a table, the sum of each cost basis in each currency, and the rows that fail each check of a column.

    There are no sums without a currency. `rows_digest` is the same text for the same rows; it is empty where equal rows
    make equal files.
    """

    row_count: int
    totals: Totals
    rows_digest: str
    failing: dict[str, int]


def counted(
    engine: Engine, table: str, columns: Sequence[tuple[str, str]], conditions: Mapping[str, str] = MappingProxyType({})
) -> Counted:
    """What one scan counts of a table of these columns (name and type); the `conditions` select rows that fail."""
    names = [name for name, _ in columns]
    currency = next((name for name in CURRENCIES if name in names), None)
    bases = [name for name in BASES if name in names] if currency else []
    found = ["count(*) as row_count"] + [f'cast(sum("{name}") as decimal(38, 10)) as "{name}"' for name in bases]
    found += [f'count(*) filter (where {condition}) as "{check}"' for check, condition in conditions.items()]
    source, is_hashed = f'"{table}"', bool(names) and not engine.is_reproducible
    if is_hashed:
        # Spark's hash ignores nulls.
        values = ", ".join(f'"{name}" is null, "{name}"' for name in names)
        found.append("sum(cast(row_hash as decimal(38, 0))) as hashes")
        source = f"(select *, hash({values}) as row_hash from {source}) as hashed"
    by, group = (f"{currency} as unit, ", " group by 1 order by 1") if bases else ("", "")
    rows = engine.rows(f"select {by}{', '.join(found)} from {source}{group}")
    totals = {name: {row["unit"]: row[name] for row in rows if row[name] is not None} for name in bases}
    row_count = sum(row["row_count"] for row in rows)
    digest = f"{columns} {row_count} {sum(row['hashes'] or 0 for row in rows)}" if is_hashed else ""
    return Counted(row_count, totals, digest, {check: sum(row[check] for row in rows) for check in conditions})


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
