"""Laws of the decomposition: whatever the costs and factors, the parts are the difference and nothing else."""

from __future__ import annotations

from decimal import Decimal
from math import isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis.decomposition import Part, decompose

NAMES = ("silicon_price", "rate", "operations", "convergence", "price_change")
costs = st.decimals("0.000001", "1e9", places=6)
values = st.one_of(st.none(), st.floats(1e-9, 1e9))
measured = st.floats(1e-6, 1e6)
anything = st.fixed_dictionaries({name: st.tuples(values, values) for name in NAMES})
all_measured = st.fixed_dictionaries({name: st.tuples(measured, measured) for name in NAMES})


def usd(parts: list[Part]) -> Decimal:
    return sum((part.usd for part in parts if part.usd is not None), Decimal(0))


@given(costs, costs, anything)
def test_parts_sum_to_the_difference_to_the_last_decimal(gpu: Decimal, trn: Decimal, factors) -> None:
    assert usd(decompose(gpu, trn, factors, "silicon_hours")) == gpu - trn


@given(costs, costs, all_measured)
def test_factors_multiply_to_the_costs_and_their_logarithms_add_up(gpu: Decimal, trn: Decimal, factors) -> None:
    parts = decompose(gpu, trn, factors, "silicon_hours")
    products = [1.0, 1.0]
    for part in parts:
        assert part.baseline and part.candidate
        products = [products[0] * part.baseline, products[1] * part.candidate]
    assert isclose(products[0], float(gpu), rel_tol=1e-9) and isclose(products[1], float(trn), rel_tol=1e-9)
    assert isclose(sum(part.log_ratio or 0 for part in parts), log(gpu) - log(trn), rel_tol=1e-9, abs_tol=1e-9)


@given(costs, costs, all_measured)
def test_the_sides_may_be_swapped(gpu: Decimal, trn: Decimal, factors) -> None:
    there = decompose(gpu, trn, factors, "silicon_hours")
    back = decompose(trn, gpu, {name: (b, a) for name, (a, b) in factors.items()}, "silicon_hours")
    for one, other in zip(there, back, strict=True):
        assert one.usd is not None and other.usd is not None
        # As far as ten places and the digits of a double reach.
        assert abs(one.usd + other.usd) <= Decimal("2e-9") + (gpu + trn) * Decimal("1e-12")


@given(costs, measured)
def test_one_factor_that_differs_takes_all(trn: Decimal, value: float) -> None:
    """A GPU of half the rate and all else equal: the difference is the rate's alone."""
    factors = {"silicon_price": (value, value), "rate": (0.5, 1.0)}
    price, rate, hours = decompose(trn / 2, trn, factors, "silicon_hours")
    assert price.usd == 0
    assert rate.usd is not None and hours.usd is not None
    assert abs(rate.usd + trn / 2) <= Decimal("1e-9") + trn * Decimal("1e-12")
    assert abs(hours.usd) <= Decimal("1e-9") + trn * Decimal("1e-12")


@given(costs, costs, measured, measured)
def test_a_part_has_the_sign_of_what_its_factor_did(gpu: Decimal, trn: Decimal, a: float, b: float) -> None:
    """A higher price on the GPU can only have made the GPU more expensive."""
    (price, _) = decompose(gpu, trn, {"silicon_price": (a, b)}, "silicon_hours")
    assert price.usd is not None
    assert price.usd >= 0 if a >= b else price.usd <= 0


def test_a_factor_that_is_not_measured_stands_in_the_remaining_one() -> None:
    """8 = 2 x 4 next to 1 = 1 x 1: without the first factor all of ln 8 is the second's, 7 dollars."""
    rate, hours = decompose(Decimal(8), Decimal(1), {"rate": (None, 1.0)}, "hours")
    assert (rate.usd, rate.log_ratio) == (None, None)
    assert hours.usd == 7
    assert hours.log_ratio == pytest.approx(log(8))


def test_eight_and_one_by_hand() -> None:
    """L(8, 1) = 7 / ln 8. A factor 2 has 7 x ln 2 / ln 8 = 7 / 3, the remaining 4 twice that."""
    rate, hours = decompose(Decimal(8), Decimal(1), {"rate": (2.0, 1.0)}, "hours")
    assert rate.usd == Decimal("2.3333333333")
    assert hours.usd == Decimal("4.6666666667")
    assert (hours.baseline, hours.candidate) == (4.0, 1.0)


def test_equal_costs() -> None:
    """3 = 1 x 3 and 3 = 3 x 1: L is 3, so 3 ln(1/3) and 3 ln 3 cancel."""
    rate, hours = decompose(Decimal(3), Decimal(3), {"rate": (1.0, 3.0)}, "hours")
    assert rate.usd == Decimal("-3.2958368660") and hours.usd == Decimal("3.2958368660")
