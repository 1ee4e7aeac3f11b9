"""Laws of the expressions that cut a cost in pieces, for any decimals, through the engine."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.expressions import expand_calls

STEP = Fraction(1, 10**10)
# Each example is many costs, for one query answers them all. No line of a bill comes near a billion dollars.
COSTS = st.lists(
    st.one_of(
        st.decimals(Decimal(-900_000_000), Decimal(900_000_000), places=10),
        st.decimals(Decimal(-1000), Decimal(1000), places=10),
        st.decimals(Decimal("-0.000001"), Decimal("0.000001"), places=10),
    ),
    min_size=1,
    max_size=40,
    unique=True,
)
WHOLES = st.integers(1, 64 * 3_600_000) | st.integers(1, 10)
FEW = settings(max_examples=25, deadline=None, derandomize=True, database=None)

PIECES = """
select cost, piece_no, piece_usd(cost, lower_units, upper_units, whole_units) as piece
from (
    select cast(cost as decimal(20, 10)) as cost, piece_no, lower_units, upper_units, {whole} as whole_units
    from (values {costs}) as given (cost)
    cross join (values {cuts}) as cut (piece_no, lower_units, upper_units)
) as pieces
order by cost, piece_no
"""


@cache
def engine() -> DuckDBEngine:
    """One for all examples."""
    return DuckDBEngine(threads=1)


def pieces(costs: list[Decimal], whole: int, inner: list[int]) -> dict[Decimal, list[Decimal]]:
    """The pieces of each cost between touching cuts of 0..whole."""
    bounds = [0, *sorted(inner), whole]
    cuts = ", ".join(f"({n}, {lower}, {upper})" for n, (lower, upper) in enumerate(pairwise(bounds)))
    sql = PIECES.format(whole=whole, costs=", ".join(f"('{cost:f}')" for cost in costs), cuts=cuts)
    found: dict[Decimal, list[Decimal]] = {}
    for cost, _, piece in engine().query(expand_calls(sql, Path("law"))).rows():
        found.setdefault(cost, []).append(piece)
    return found


@st.composite
def cut_units(draw: st.DrawFn) -> tuple[int, list[int]]:
    whole = draw(WHOLES)
    return whole, draw(st.lists(st.integers(0, whole), max_size=8))


@FEW
@given(COSTS, cut_units())
def test_touching_pieces_sum_to_the_cost_exactly(costs: list[Decimal], units: tuple[int, list[int]]) -> None:
    for cost, parts in pieces(costs, *units).items():
        assert sum(parts) == cost


@FEW
@given(COSTS, cut_units())
def test_merging_two_pieces_changes_neither_the_others_nor_the_sum(
    costs: list[Decimal], units: tuple[int, list[int]]
) -> None:
    whole, inner = units
    fine, coarse = pieces(costs, whole, inner), pieces(costs, whole, sorted(inner)[1:])
    for cost, parts in coarse.items():
        merged = fine[cost] if not inner else [fine[cost][0] + fine[cost][1], *fine[cost][2:]]
        assert parts == merged


@FEW
@given(COSTS, WHOLES, st.data())
def test_a_share_is_the_nearest_step(costs: list[Decimal], whole: int, data: st.DataObject) -> None:
    upper = data.draw(st.integers(0, whole))
    for cost, (first, _) in pieces(costs, whole, [upper]).items():
        exact = Fraction(cost) * upper / whole
        # Half a step, and what the last bits of a double of that size are worth.
        assert abs(Fraction(first) - exact) <= STEP / 2 + abs(Fraction(cost)) / 2**50
        if abs(cost) < 100_000 and (exact / STEP).denominator == 1:
            assert Fraction(first) == exact
