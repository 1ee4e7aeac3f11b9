"""How far apart checkpoints should be: the check values of facts training-runs 5, and what each rule minimizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis.checkpoint_interval import availability, daly, dollar, overhead, young

SAVES = st.floats(1, 900)
BETWEEN = st.floats(3_600, 3_000_000)


@pytest.mark.parametrize(
    ("save", "between", "restart", "by_young", "by_daly", "by_availability", "overhead_at_young"),
    [(60, 10_800, 300, 1138.4, 1098.8, 1215.7, 0.1447), (300, 86_400, 900, 7200.0, 7001.4, 7543.6, 0.0996)],
)
def test_check_values(
    save: float,
    between: float,
    restart: float,
    by_young: float,
    by_daly: float,
    by_availability: float,
    overhead_at_young: float,
) -> None:
    assert young(save, between) == pytest.approx(by_young, abs=0.05)
    assert daly(save, between) == pytest.approx(by_daly, abs=0.05)
    assert availability(save, between, restart) == pytest.approx(by_availability, abs=0.05)
    assert overhead(young(save, between), save, between, restart) == pytest.approx(overhead_at_young, abs=0.00005)


def test_a_save_that_costs_five_dollars_on_sixteen_p5() -> None:
    rate = 16 * 55.04 / 3600
    assert rate == pytest.approx(0.244622, abs=5e-7)
    assert dollar(60, 10_800, rate, 5, 0) == pytest.approx(1318, abs=0.5)


def test_daly_when_saving_takes_longer_than_the_job_lives() -> None:
    # C >= 2M: no interval is worth more than the time between interruptions itself.
    assert daly(7200, 3600) == daly(9000, 3600) == 3600


def test_without_price_or_notice_the_dollar_rule_is_young() -> None:
    assert dollar(60, 10_800, 1.0, 0, 0) == young(60, 10_800)


@given(SAVES, BETWEEN, st.floats(0.001, 10), st.floats(0, 50), st.floats(0, 0.95), st.floats(0.3, 3))
def test_no_other_interval_costs_less_dollars(
    save: float, between: float, rate: float, save_cost: float, noticed: float, other: float
) -> None:
    def cost(interval: float) -> float:
        return (rate * save + save_cost) / interval + (1 - noticed) * rate * interval / 2 / between

    best = dollar(save, between, rate, save_cost, noticed)
    assert cost(best) <= cost(best * other) * (1 + 1e-12)


@given(SAVES, BETWEEN, st.floats(0, 3_600), st.floats(0.3, 3))
def test_no_other_interval_takes_less_time_than_daly(save: float, between: float, restart: float, other: float) -> None:
    """Daly 2006 reports his approximation within 0.2 % of the least time for saves shorter than a fifth of M."""
    best = daly(save, between)
    least = 1 + overhead(best * other, save, between, restart)
    assert 1 + overhead(best, save, between, restart) <= least * 1.002


def test_first_order_overhead_is_too_low() -> None:
    """C = 900, M = 3600 at Young's interval: 2 · 900 / 2545.6 = 0.7071 to first order; e^0.957107 - 1 = 1.604148."""
    assert overhead(young(900, 3600), 900, 3600) == pytest.approx(3600 * 1.604148 / 2545.584 - 1, abs=1e-4)
    assert overhead(1, 60, 0.01) == float("inf")


@given(SAVES, BETWEEN, st.floats(0.0, 0.9))
def test_the_more_is_saved_upon_notice_the_rarer_by_the_clock(save: float, between: float, noticed: float) -> None:
    assert dollar(save, between, 1, 0, noticed + 0.05) > dollar(save, between, 1, 0, noticed)
