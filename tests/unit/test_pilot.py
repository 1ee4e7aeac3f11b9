"""What a pilot must do: its runs by the power calculation, what they cost, and the saving that decides."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bills import instance_time, one_attempt, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.analysis.estimate import estimate, runs_needed, sample
from pipelines.transforms.pilot_plan import cost_of_a_run, deciding_saving, runs_to_do

# Costs as in the story of wins, ties and losses, which derives both counts.
STEPS, HALF = sample([10.0, 11.0, 12.1]), sample([5.0, 5.5, 6.05])


def test_one_side_alone_shows_how_many_runs_five_points_take() -> None:
    assert runs_to_do(STEPS, None, None)[:2] == (73, 76)
    assert runs_to_do(None, STEPS, None)[:2] == (76, 73)


@pytest.mark.parametrize("costs", [[], [10.0], [10.0, 10.0]])
def test_what_shows_no_variance_asks_for_three_a_side(costs: list[float]) -> None:
    assert runs_to_do(sample(costs), None, None)[:2] == (max(0, 3 - len(costs)), 3)


def test_runs_that_may_claim_nothing_are_made_anew() -> None:
    """The story's `worse`: nine a side decide, three were made."""
    assert runs_to_do(STEPS, HALF, 0.293429)[:2] == (6, 6)
    assert runs_to_do(STEPS, HALF, 0.293429, ["candidate"])[:2] == (6, 9)


def test_a_registered_pilot_of_what_is_supported_makes_its_runs_anew() -> None:
    """Nine a side decide, and what three a side showed before the registration proves nothing."""
    assert runs_to_do(STEPS, HALF, 0.293429, ["baseline", "candidate"])[:2] == (9, 9)


def test_no_pilot_is_without_a_run() -> None:
    """Two equal costs a side need the minimum of three; with four a side none is lacking, so three are made anew."""
    four = sample([10.0] * 4)
    assert runs_to_do(four, four, None)[:2] == (3, 3)


def test_a_saving_as_measured_takes_five_points_to_decide() -> None:
    """Nothing lies between the saving and what decides, so only the width is left."""
    assert runs_needed(STEPS, HALF, 0.5) == runs_needed(STEPS, HALF)


def test_planned_runs_decide_four_times_in_five() -> None:
    """By simulation: with a true ratio of 0.4 and a deviation of 0.2 the interval of so many runs excludes zero."""
    rng = np.random.default_rng(7)
    base = np.array([-1.0, 0.0, 1.0]) * 0.2
    runs = runs_needed(sample(np.exp(base).tolist()), sample(np.exp(base + log(0.4)).tolist()), 0.0)
    assert runs is not None
    found = 0
    for _ in range(1000):
        x, y = (np.exp(rng.normal(mean, 0.2, runs)).tolist() for mean in (0.0, log(0.4)))
        low = estimate(sample(x), sample(y)).low
        found += low is not None and low > 0
    # At least that power, within three standard errors; whole runs make it more.
    assert found / 1000 >= 0.8 - 0.038


def test_a_side_without_a_run_may_cost_what_the_other_does() -> None:
    assert cost_of_a_run(900.0, None) == (900.0, "measured")
    assert cost_of_a_run(None, 900.0) == (900.0, "at most what the other side costs")
    assert cost_of_a_run(None, None) == (None, "unknown")


def test_the_saving_that_decides_pays_the_port_back() -> None:
    """Facts training-runs 8: 16,000 of port, runs of 6,000; by 7 runs 16,000 / 7 / 6,000 = 38.1 % must be saved."""
    assert deciding_saving(16_000, 7, 6_000) == pytest.approx(0.380952, abs=1e-6)
    assert deciding_saving(None, 7, 6_000) is None
    assert deciding_saving(16_000, None, 6_000) is None


def test_a_pilot_is_priced_in_its_region_and_today(tmp_path: Path) -> None:
    """An hour of p5.48xlarge at 55.04 is 2.56 hours of trn1.32xlarge at today's 21.50, not 1.28 at 43.00 of 2027, nor
    1.376 at 40.00 or 5.504 of a block at 10.00 in another region than the workload's."""
    start, hour = datetime(2026, 7, 1, 10), timedelta(hours=1)
    export = write_export(tmp_path, {"2026-07": instance_time("i-g", "p5.48xlarge", "55.04", start, hour)})
    inside = [{"event": "epoch_completed", "epoch": 1, "at": "2026-07-01T11:00:00Z"}]
    events = one_attempt("g", ["i-g"], "p5.48xlarge", start, hour, inside, model="m", dataset="d")
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events))
    config.write_text(
        config.read_text()
        + """
[[prices]]
instance_type = "trn1.32xlarge"
region_id = "us-east-1"
offer = "on_demand"
from_date = 2027-01-01
price_per_hour_usd = "43.00"
source = "announced"

[[prices]]
instance_type = "trn1.32xlarge"
region_id = "ap-northeast-1"
offer = "on_demand"
from_date = 2026-06-01
price_per_hour_usd = "40.00"

[[decisions.offers]]
instance_type = "trn1.32xlarge"
region_id = "us-east-1"
purchase_option = "on_demand"
lead_days = 0
reported_on = 2026-07-01

[[decisions.offers]]
instance_type = "trn1.32xlarge"
region_id = "us-west-2"
purchase_option = "capacity_block"
block_hours = 24
lead_days = 0
reported_on = 2026-07-01
price_per_hour_usd = "10.00"

[[decisions.workloads]]
workload_id = "m / d / seq ? / batch ? / any precision / no target"
region_id = "us-east-1"
"""
    )
    rows = ask(lazy_warehouse(config), "select candidate_hours_per_run from mart_portfolio").rows()
    assert rows == [(pytest.approx(2.56),)]


def test_a_workload_on_other_machines_has_no_known_cost(tmp_path: Path) -> None:
    """`m` cost 2 x 12.98 on Inferentia, which neither option of the decision shows; `z` has no run at all."""
    start, hours = datetime(2026, 7, 1, 10), timedelta(hours=2)
    export = write_export(tmp_path, {"2026-07": instance_time("i-f", "inf2.48xlarge", "12.98", start, hours)})
    events = one_attempt("f", ["i-f"], "inf2.48xlarge", start, hours, model="m", dataset="d")
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events))
    names = [f"{model} / d / seq ? / batch ? / any precision / no target" for model in "mz"]
    declared = (f'\n[[decisions.workloads]]\nworkload_id = "{name}"\n' for name in names)
    config.write_text(config.read_text() + "".join(declared))
    columns = "workload_id, monthly_cost_usd, monthly_at_stake_usd, recommendation_reason"
    rows = ask(lazy_warehouse(config), f"select {columns} from mart_portfolio order by 1").rows()
    reason = "its billed runs are of several currencies, or not on GPU or Trainium alone"
    assert rows == [(names[0], None, None, reason), (names[1], 0, 0, "no billed run")]


def test_what_ran_on_other_machines_is_no_cost_on_the_gpu(tmp_path: Path) -> None:
    """An hour of the GPU at 55.04 and one of Inferentia at 12.98 are 68.02, which all of it costs on neither."""
    start, hour, months, events = datetime(2026, 7, 1, 10), timedelta(hours=1), [], []
    for kind, rate in (("p5.48xlarge", "55.04"), ("inf2.48xlarge", "12.98")):
        months += instance_time(f"i-{kind}", kind, rate, start, hour)
        events += one_attempt(kind, [f"i-{kind}"], kind, start, hour, model="m", dataset="d")
    export = write_export(tmp_path, {"2026-07": months})
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events))
    columns = "monthly_cost_usd, gpu_monthly_cost_usd, monthly_at_stake_usd, at_stake_evidence"
    rows = ask(lazy_warehouse(config), f"select {columns} from mart_portfolio").rows()
    assert rows == [(Decimal("68.02"), None, Decimal("68.02"), "at most all of it")]


@pytest.mark.parametrize("currency", ["USD", "EUR"])
def test_training_costs_nothing_a_month_if_it_ended_before_the_bill(tmp_path: Path, currency: str) -> None:
    """An hour in May and two in June; the bill goes on to November, more than 90 days later, and its last whole months
    are September and October. So neither the 55.04 more of June is a growing bill nor are the 165.12 at stake.

    That of a payer in EUR ends with June 10, of which nothing is whole: 165.12 of 32 days are 165.12 / 32 x 30.4375."""
    hour, months, events = timedelta(hours=1), {}, []
    for month in (5, 6, 11):
        start, hours = datetime(2026, month, 10, 10), 2 * hour if month == 6 else hour
        machine = ("i-w", "m5.large", "0.10") if month == 11 else (f"i-{month}", "p5.48xlarge", "55.04")
        other = {"line_item_currency_code": "EUR", "bill_payer_account_id": "000055556666"}
        payer = other if currency == "EUR" and month < 11 else {}
        months[f"2026-{month:02d}"] = instance_time(*machine, start, hours, **payer)
        if month < 11:
            events += one_attempt(f"r-{month}", [machine[0]], machine[1], start, hours, model="m", dataset="d")
    config = write_config(
        tmp_path, billing=write_export(tmp_path, months), runs=write_events(tmp_path / "runs", events)
    )
    columns = "monthly_cost_usd, monthly_at_stake_usd, rule_findings like '%monthly cost trend 0 not > 0'"
    ended, going_on = (0, 0, True), (Decimal("157.0575"), Decimal("157.0575"), False)
    rows = ask(lazy_warehouse(config), f"select {columns} from mart_portfolio").rows()
    assert rows == [ended if currency == "USD" else going_on]


def _ported(tmp_path: Path, price: str, *, more: str = "", **facts: Any) -> Path:
    """The configuration of a port to Trainium that cost 300, and of one GPU run of two hours at `price` an hour."""
    start, hours = datetime(2026, 7, 1, 10), timedelta(hours=2)
    export = write_export(tmp_path, {"2026-07": instance_time("i-g", "p5.48xlarge", price, start, hours)})
    events = one_attempt("g", ["i-g"], "p5.48xlarge", start, hours, model="m", dataset="d", **facts)
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events))
    config.write_text(
        config.read_text()
        + f"""
[[decisions.ports]]
name = "to trn1"
workload_id = "m / d / seq ? / batch ? / any precision / no target"
started_on = 2026-07-01
engineer_days = 1
day_rate_usd = "300"
{more}
"""
    )
    return config


def test_a_port_is_not_held_against_runs_of_unknown_cost(tmp_path: Path) -> None:
    """The runs' hours cost nothing, as on a dedicated host: 300 for the port is not more than 12 runs of 0.00."""
    columns = "recommendation, decided_by, monthly_cost_usd, monthly_at_stake_usd"
    rows = ask(lazy_warehouse(_ported(tmp_path, "0.00")), f"select {columns} from mart_portfolio").rows()
    assert rows == [("run a pilot", "missing inputs", None, None)]


def test_what_a_declared_port_lacks_is_named(tmp_path: Path) -> None:
    """Its cost and what pays it back are unknown for want of a billed run, not of a declaration."""
    config = _ported(tmp_path, "55.04", more='pilot_run_ids = ["gone"]', purpose="finetune")
    ((missing,),) = ask(lazy_warehouse(config), "select missing_evidence from mart_portfolio").rows()
    assert "no bill in USD has the pilot run gone; " in missing
    assert "[[decisions.ports]]" not in missing
