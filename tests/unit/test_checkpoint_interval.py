"""How far apart checkpoints should be: the check values of facts training-runs 5, and what each rule minimizes."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from math import exp
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bills import instance_time, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.expressions import expand_calls

SAVES = st.floats(1, 900)
BETWEEN = st.floats(3_600, 3_000_000)
FEW = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def value(call: str) -> float | None:
    """What a call of a function of sql/functions gives."""
    with DuckDBEngine(threads=1) as engine:
        return engine.query(expand_calls(f"select {call} as value", Path("check")))["value"][0]


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
    assert value(f"young_interval({save}, {between})") == pytest.approx(by_young, abs=0.05)
    assert value(f"daly_interval({save}, {between})") == pytest.approx(by_daly, abs=0.05)
    assert value(f"availability_interval({save}, {between}, {restart})") == pytest.approx(by_availability, abs=0.05)
    # The check value includes restarts, which cost the same at any interval.
    overhead = value(f"checkpoint_overhead_ratio({by_young}, {save}, {between})")
    assert overhead is not None
    assert (1 + overhead) * exp(restart / between) - 1 == pytest.approx(overhead_at_young, abs=0.00005)


def test_daly_when_saving_takes_longer_than_the_job_lives() -> None:
    # C >= 2M: no interval is worth more than the time between interruptions itself.
    assert value("daly_interval(7200, 3600)") == value("daly_interval(9000, 3600)") == 3600


@FEW
@given(SAVES, BETWEEN, st.floats(0.3, 3))
def test_no_other_interval_takes_less_time_than_daly(save: float, between: float, other: float) -> None:
    """Daly 2006 reports his approximation within 0.2 % of the least time for saves shorter than a fifth of M."""
    times = f"cast({save!r} as double), cast({between!r} as double)"
    taken = value(f"checkpoint_overhead_ratio(daly_interval({times}), {times})")
    least = value(f"checkpoint_overhead_ratio(daly_interval({times}) * {other!r}, {times})")
    assert taken is not None
    assert least is None or 1 + taken <= (1 + least) * 1.002


def test_first_order_overhead_is_too_low() -> None:
    """C = 900, M = 3600 at Young's interval: 2 · 900 / 2545.6 = 0.7071 to first order; e^0.957107 - 1 = 1.604148."""
    overhead = value("checkpoint_overhead_ratio(young_interval(900, 3600), 900, 3600)")
    assert overhead == pytest.approx(3600 * 1.604148 / 2545.584 - 1, abs=1e-4)
    assert value("checkpoint_overhead_ratio(1, 60, 0.01)") is None


def test_what_trains_on_during_an_asynchronous_save_is_lost_with_it(tmp_path: Path) -> None:
    """The save began at 11:00, held the training for a minute and was durable at 11:30; AWS took the instance at 12:00.
    The next attempt begins at what 11:01 had: 59 minutes at 6.00 an hour are lost, 5.90, not the 30 since 11:30."""
    start, hours = datetime(2026, 7, 14, 10), timedelta(hours=3)
    save = {"checkpoint_id": "k", "step": 1, "save_started_at": "2026-07-14T11:00:00Z", "stall_seconds": 60}
    happened = [
        ("10:00", "run_started", {}),
        ("10:00", "resource_joined", {"resource": "i-0a"}),
        ("11:30", "checkpoint_saved", save),
        ("12:00", "attempt_ended", {"reason": "spot_interruption"}),
        ("12:00", "resource_joined", {"resource": "i-0a", "attempt": 2}),
        ("13:00", "run_ended", {"status": "completed"}),
    ]
    events = [{"run_id": "r", "event": name, "at": f"2026-07-14T{at}:00Z", **more} for at, name, more in happened]
    export = write_export(tmp_path, {"2026-07": instance_time("i-0a", "trn1.32xlarge", "6.00", start, hours)})
    built = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events)))
    query = "select effective_cost_usd, lost_work_cost_usd from mart_run_cost"
    assert ask(built, query).rows() == [(Decimal(18), Decimal("5.9"))]
