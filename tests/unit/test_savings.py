"""Avoided cost: what is unknown of it, and what a bill in another currency can show."""

from __future__ import annotations

import hashlib
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.bills import instance_hour, instance_time, one_attempt, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.contract import load_contract
from pipelines.models.validate import validate

MART = "mart_savings_monthly"
KINDS = {
    "VARCHAR": pl.String(),
    "BIGINT": pl.Int64(),
    "BOOLEAN": pl.Boolean(),
    "DATE": pl.Date(),
    "DECIMAL(20,6)": pl.Decimal(20, 6),
    "DECIMAL(20,10)": pl.Decimal(20, 10),
    "DECIMAL(38,6)": pl.Decimal(38, 6),
    "DECIMAL(38,10)": pl.Decimal(38, 10),
}
# 100 by the baseline, 40 in fact.
MONTH = {
    "workload_id": "w",
    "month_date": date(2026, 7, 1),
    "billing_currency": "USD",
    "baseline_name": "b",
    "run_count": 1,
    "adjustment_count": 0,
    "actual_cost_usd": Decimal(40),
    "baseline_cost_usd": Decimal(100),
    "avoided_cost_usd": Decimal(60),
    "stranded_cost_usd": Decimal(0),
}


@pytest.mark.parametrize(
    ("changed", "warned"),
    [
        ({}, []),
        # Runs that cost less than nothing, or an adjustment that makes it look so.
        ({"avoided_cost_usd": Decimal(101)}, ["more avoided than the baseline would have cost"]),
        ({"avoided_cost_usd": Decimal(101), "adjustment_count": 1}, ["more avoided than the baseline would have cost"]),
        # An adjustment of a month in which nothing ran has no baseline to be held against.
        ({"avoided_cost_usd": Decimal(5), "baseline_cost_usd": Decimal(0), "run_count": 0, "adjustment_count": 1}, []),
    ],
)
def test_a_warning_names_more_saved_than_would_have_been_spent(
    tmp_path: Path, changed: dict[str, Any], warned: list[str]
) -> None:
    contract = load_contract(f"marts/{MART}")
    schema = {column.name: KINDS[column.type] for column in contract.columns}
    row = {**dict.fromkeys(schema), **MONTH, **changed}
    file = tmp_path / "month.parquet"
    pl.DataFrame([row], schema=schema).write_parquet(file)
    with DuckDBEngine() as engine:
        engine.view(MART, [file])
        results, _ = validate(engine, MART, contract)
    assert [(check.title, check.severity) for check in results if not check.passed] == [(one, "warn") for one in warned]


def hour_of_one_epoch(
    name: str,
    cost: str = "20.00",
    epochs: int = 1,
    machines: int = 1,
    is_twin: bool = False,
    is_resumed: bool = False,
    next_epoch: int = 1,
    status: str = "completed",
    compile_run_id: str | None = None,
    **line: str,
) -> tuple[list[Any], list[Any]]:
    """Lines and events of an hour of trn1.32xlarge at `cost` that records so many `epochs` of the model `name`. The
    first of its `machines` is on the bill. A twin records the same job on half of it; or a run continues the first one
    in an hour of its own, with epochs from `next_epoch`."""
    start, hour = datetime(2026, 7, 14, 10), timedelta(hours=1)
    first, *_ = nodes = [f"i-0{name}{number}" for number in range(machines)]
    lines = instance_time(first, "trn1.32xlarge", cost, start, hour, **line)
    inside = [{"event": "epoch_completed", "epoch": 1, "at": "2026-07-14T11:00:00Z"}] * epochs
    work = {"model": name, "dataset": "d", "epoch_unit": "dataset_pass"}
    work |= {"compile_run_id": compile_run_id} if compile_run_id else {}
    if is_twin:
        inside += [{"event": "evaluation", "at": "2026-07-14T10:30:00Z", "metric": "loss", "value": 2.0, "step": 5}]
    events = [
        event | ({"accelerators_used": 8} if is_twin and event["event"] == "resource_joined" else {})
        for run_id in (f"{name}-a", f"{name}-b")[: 1 + is_twin]
        for event in one_attempt(run_id, nodes, "trn1.32xlarge", start, hour, inside, **work)
    ]
    if is_resumed:
        again = [{**event, "epoch": next_epoch, "at": "2026-07-14T12:00:00Z"} for event in inside]
        lines += instance_time(first, "trn1.32xlarge", cost, start + hour, hour, **line)
        work |= {"parent_run_id": f"{name}-a", "base_checkpoint_id": "saved"}
        events += one_attempt(f"{name}-b", nodes, "trn1.32xlarge", start + hour, hour, again, **work)
    return lines, [event | ({"status": status} if event["event"] == "run_ended" else {}) for event in events]


def savings(path: Path, jobs: dict[str, dict[str, Any]], *other: dict[str, str]) -> dict[str, list[Any]]:
    """By name the savings of each of these hours of one epoch, frozen at an hour of p5.48xlarge of us-east-1 at its
    list price of 55.04. `other` lines are on the bill."""
    lines, events, declared = [*other], [], ""
    for name, job in jobs.items():
        made = hour_of_one_epoch(name, **job)
        lines, events = lines + made[0], events + made[1]
        baseline = (
            f'name = "{name}"\nversion = 1\nfrozen_on = 2026-06-30\ngpu_instance_type = "p5.48xlarge"\n'
            "hours_per_unit = 1\nhours_low_per_unit = 1\nhours_high_per_unit = 1\n"
            'unit_measure = "cost_per_epoch"\nregion_id = "us-east-1"\npaid_ratio = 1\n'
            f'workload_id = "{name} / d / seq ? / batch ? / any precision / no target"\n'
        )
        (path / f"{name}.toml").write_text(baseline)
        seal = hashlib.sha256(baseline.encode()).hexdigest()
        declared += f'\n[[decisions.baselines]]\nfile = "{name}.toml"\nsha256 = "{seal}"\n'
    export, runs = write_export(path, {"2026-07": lines}), write_events(path / "runs", events)
    config = write_config(path, billing=export, runs=runs)
    config.write_text(config.read_text() + declared)
    columns = "billing_currency, run_count, actual_cost_usd, avoided_cost_usd, cash_avoided_cost_usd, missing_evidence"
    columns += ", chip_avoided_cost_usd, rate_avoided_cost_usd, operations_avoided_cost_usd"
    rows = ask(lazy_warehouse(config), f"select baseline_name, {columns} from mart_savings_monthly").rows()
    return {name: row for name, *row in rows}


def fee(instance_type: str, unused: str) -> dict[str, str]:
    """30.00 of a month for a reservation. AWS names neither its instance type nor its region, but in its usage type."""
    return {
        "line_item_usage_start_date": "2026-07-01T00:00:00.000Z",
        "line_item_usage_end_date": "2026-08-01T00:00:00.000Z",
        "line_item_line_item_type": "RIFee",
        "line_item_usage_type": f"HeavyUsage:{instance_type}",
        "line_item_usage_amount": "744",
        "line_item_unblended_cost": "30.00",
        "reservation_reservation_a_r_n": "arn:aws:ec2:us-east-1:000033334444:reserved-instances/ri-1",
        "reservation_unused_recurring_fee": unused,
    }


@pytest.fixture(scope="module")
def july(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """One bill of July, on which is also a reservation of a machine that is no GPU."""
    jobs: dict[str, dict[str, Any]] = {
        "fine": {"cost": "20.0000004"},
        "silent": {"epochs": 0},
        "twin": {"is_twin": True},
        "resumed": {"is_resumed": True},
        "hosted": {"cost": "0.00"},
        "loaded": {"compile_run_id": "gone"},
        "onward": {"is_resumed": True, "next_epoch": 2},
        "lost": {"is_twin": True, "status": "failed"},
        "euro": {"line_item_currency_code": "EUR"},
        "wide": {"machines": 2},
        "refunded": {},
        "both": {},
        "plain": {},
    }
    refund = instance_hour("2026-07-14T10", "i-0refunded0", "trn1.32xlarge", "20.00", "-2.25")
    krone = instance_hour("2026-07-14T10", "i-0both0", "trn1.32xlarge", "20.00", "0", line_item_currency_code="NOK")
    return savings(tmp_path_factory.mktemp("july"), jobs, fee("m5.large", ""), refund, krone)


def test_operations_avoid_nothing_where_no_run_failed(july: dict[str, list[Any]]) -> None:
    """55.04 - 20.0000004 has more decimals than the parts by rate and operations; the chip takes what they leave."""
    row = july["fine"]
    assert (row[3], row[8]) == (Decimal("35.0399996"), 0)
    assert sum(row[6:]) == row[3]


def test_a_completed_run_without_epochs_avoids_an_unknown_cost(july: dict[str, list[Any]]) -> None:
    """What it would have cost on the GPU is unknown, so neither all nor none of its 20.00 is an operational loss."""
    row = july["silent"]
    assert row[1:5] == [1, Decimal(20), None, None]
    assert row[5] == "the units of work of the completed run silent-a are not recorded"
    assert row[6:] == [None, None, None]


def test_one_job_of_two_run_ids_does_its_units_once(july: dict[str, list[Any]]) -> None:
    """Both record the same epoch with the same evaluation on one machine: 55.04 - 20.00, as of a single run."""
    assert july["twin"][1:4] == [1, Decimal(20), Decimal("35.04")]


def test_a_failed_job_of_two_run_ids_avoids_nothing(july: dict[str, list[Any]]) -> None:
    """Its epoch was completed, and no unit of the baseline: the 20.00 are lost."""
    assert july["lost"][1:4] == [1, Decimal(20), Decimal(-20)]


def test_a_job_of_unclear_units_avoids_an_unknown_cost(july: dict[str, list[Any]]) -> None:
    """The run that continues another records epoch 1, too: 2 epochs or 1 twice, so neither 70.08 nor 15.04 is known."""
    assert july["resumed"][1:4] == [1, Decimal(40), None]


def test_a_job_of_two_run_ids_reaches_its_target_once(tmp_path: Path) -> None:
    """Both met it at the end of the hour, each on half of a machine at 20.00."""
    start, hour = datetime(2026, 7, 14, 10), timedelta(hours=1)
    met = {
        "event": "evaluation",
        "at": "2026-07-14T11:00:00Z",
        "metric": "loss",
        "split": "val",
        "value": 1.9,
        "step": 5,
    }
    target = {"model": "m", "target_metric": "loss", "target_value": 2.0, "target_direction": "min"}
    events = [
        event | ({"accelerators_used": 8} if event["event"] == "resource_joined" else {})
        for run_id in ("run-a", "run-b")
        for event in one_attempt(run_id, ["i-0a"], "trn1.32xlarge", start, hour, [met], **target)
    ]
    export = write_export(tmp_path, {"2026-07": instance_time("i-0a", "trn1.32xlarge", "20.00", start, hour)})
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events))
    columns = "run_count, reached_run_count, cost_per_reached_target_usd"
    rows = ask(lazy_warehouse(config), f"select {columns} from detail_workload_cost").rows()
    assert rows == [(2, 1, Decimal(20))]


def test_the_hours_of_a_job_of_two_run_ids_make_one_success(tmp_path: Path) -> None:
    """Each side trains an hour at 20.00 up to its target, so that no factor makes a difference."""
    start, hour, lines, events = datetime(2026, 7, 14, 10), timedelta(hours=1), [], []
    begun, ended = "2026-07-14T10:00:00Z", "2026-07-14T11:00:00Z"
    inside = [
        {"event": "phase_started", "at": begun, "phase": "train"},
        {"event": "phase_ended", "at": ended, "phase": "train"},
        {"event": "evaluation", "at": ended, "metric": "loss", "split": "val", "value": 1.9, "step": 5},
        {"event": "checkpoint_completed", "at": ended, "checkpoint_id": "last", "step": 5},
    ]
    work = {"model": "m", "dataset": "d", "target_metric": "loss", "target_value": 2.0, "target_direction": "min"}
    for run_id, kind, used in (("a", "p5.48xlarge", 4), ("b", "p5.48xlarge", 4), ("trn", "trn1.32xlarge", 16)):
        machine = f"i-{kind[:2]}"
        made = one_attempt(run_id, [machine], kind, start, hour, inside, **work)
        events += [e | ({"accelerators_used": used} if e["event"] == "resource_joined" else {}) for e in made]
        lines += [] if run_id == "b" else instance_time(machine, kind, "20.00", start, hour)
    export = write_export(tmp_path, {"2026-07": lines})
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events))
    columns = "factor, baseline_factor, candidate_factor"
    query = f"select {columns} from mart_cost_decomposition where cost_basis = 'effective' order by factor_no"
    assert ask(lazy_warehouse(config), query).rows()[:5] == [
        ("silicon_price", 20.0, 20.0),
        ("silicon_hours", pytest.approx(1 / 5), pytest.approx(1 / 5)),
        ("rate", pytest.approx(1), pytest.approx(1)),
        ("operations", pytest.approx(1), pytest.approx(1)),
        ("convergence", 5.0, 5.0),
    ]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_resumed_job_trained_on_its_tokens_once(tmp_path: Path, status: str) -> None:
    """Two runs of an hour each count on to 2 and to 4 million tokens: 4 in 2 hours for 40.00, 10.00 a million.

    Two epochs of each are its own, of 10.00; which of the tokens are a run's, its count alone does not show. What a job
    did before it failed is done, as of a single run.
    """
    hour, lines, events = timedelta(hours=1), [], []
    for kind, run_id, at, seen in (
        ("p5.48xlarge", "first", 10, (1, 2)),
        ("p5.48xlarge", "rest", 11, (3, 4)),
        ("trn1.32xlarge", "trn", 10, (1, 2)),
    ):
        start, machine = datetime(2026, 7, 14, at), f"i-{kind[:2]}"
        lines += instance_time(machine, kind, "20.00", start, hour)
        inside = [
            {"event": "epoch_completed", "epoch": n, "at": f"2026-07-14T{at}:{n}0:00Z", "tokens_seen": n * 1_000_000}
            for n in seen
        ]
        origin = {"parent_run_id": "first", "base_checkpoint_id": "saved"} if run_id == "rest" else {}
        events += one_attempt(run_id, [machine], kind, start, hour, inside, model="m", dataset="d", **origin)
    events = [event | ({"status": status} if event["event"] == "run_ended" else {}) for event in events]
    export = write_export(tmp_path, {"2026-07": lines})
    built = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events)))
    columns = "tokens_seen_count, epoch_completed_count, cost_per_million_tokens_usd"
    rows = ask(built, f"select {columns} from detail_workload_cost order by accelerator_family").rows()
    assert rows == [(4e6, 4, Decimal(10)), (2e6, 2, Decimal(10))]
    columns = "run_id, cost_per_epoch_usd, cost_per_million_tokens_usd"
    rows = ask(built, f"select {columns} from mart_run_cost order by run_id").rows()
    assert rows == [("first", Decimal(10), None), ("rest", Decimal(10), None), ("trn", Decimal(10), Decimal(10))]
    columns = "baseline_tokens_per_second, candidate_tokens_per_second"
    rows = ask(built, f"select {columns} from mart_silicon_comparison where cost_basis = 'list'").rows()
    compared = [(pytest.approx(4e6 / 7200), pytest.approx(2e6 / 3600))]
    assert rows == (compared if status == "completed" else [])


def test_a_resumed_run_is_no_failed_one(july: dict[str, list[Any]]) -> None:
    """Two epochs at 55.04 less two hours at 20.00, of which operations, the cost of failed runs, have no part."""
    assert july["onward"][1:4] == [1, Decimal(40), Decimal("70.08")]
    assert july["onward"][8] == 0


def test_a_run_on_machines_that_cost_nothing_avoids_an_unknown_cost(july: dict[str, list[Any]]) -> None:
    """As on a dedicated host, whose price stays unattributed: its hour for 0.00 did not avoid all of 55.04."""
    assert july["hosted"][1:5] == [1, None, None, None]
    assert july["hosted"][5] == "the machines of run hosted-a cost nothing or less on the bill: its cost is not certain"


def test_a_run_that_was_refunded_more_than_it_cost_avoids_an_unknown_cost(july: dict[str, list[Any]]) -> None:
    """AWS gave back 45.00 for an hour of 20.00: it did not avoid 55.04 + 25.00, more than the baseline cost."""
    assert july["refunded"][1:5] == [1, None, None, None]
    assert july["refunded"][5].startswith("the machines of run refunded-a cost nothing or less on the bill")


def test_a_run_that_is_billed_in_two_currencies_avoids_an_unknown_cost(july: dict[str, list[Any]]) -> None:
    """20.00 dollars and a line in krone have no sum."""
    assert july["both"][:5] == ["USD", 1, None, None, None]
    assert july["both"][5] == "the cost of run both-a on the bill is not known"


def test_a_run_that_loads_what_nothing_recorded_avoids_an_unknown_cost(july: dict[str, list[Any]]) -> None:
    """What compiling cost is unknown, so 20.00 is not all; no source can correct that, and the build goes on."""
    assert july["loaded"][1:5] == [1, None, None, None]
    assert july["loaded"][5].startswith("the cost of what was compiled for run loaded-a is not known")


def test_another_currency_has_no_baseline(july: dict[str, list[Any]]) -> None:
    """The book is in dollars: a bill in euro avoids an unknown amount, which is not zero; stranded is nothing."""
    row = july["euro"]
    assert row[:5] == ["EUR", 1, Decimal(20), None, None]
    assert "the bill is not in USD" in row[5]


def test_hours_that_are_not_on_the_bill_are_missing_evidence(july: dict[str, list[Any]]) -> None:
    """The run recorded a second machine of which no hour is billed, so 20.00 is not all that it cost, nor is 35.04 all
    that it avoided."""
    row = july["wide"]
    assert row[2:4] == [Decimal(20), None]
    assert row[5] == "recorded machine hours of a run are not on the bill"


def test_cash_takes_off_no_reservation_of_another_machine(july: dict[str, list[Any]]) -> None:
    """What it left unused displaces no GPU: 55.04 - 20.00."""
    assert july["plain"][3:6] == [Decimal("35.04"), Decimal("35.04"), None]


@pytest.mark.parametrize(
    ("unused", "cash", "reason"),
    [
        # Of the 30.00 a month that the reservation costs nothing was used: 35.04 - 30.00.
        ("30.00", Decimal("5.04"), None),
        # The bill does not show what used the fee: none, some or all of 30.00 is still paid.
        ("", None, "it is unknown what GPU commitments left unused"),
    ],
)
def test_cash_takes_off_an_unused_gpu_reservation(
    tmp_path: Path, unused: str, cash: Decimal | None, reason: str | None
) -> None:
    """Avoided: 55.04 - 20.00 = 35.04."""
    row = savings(tmp_path, {"plain": {}}, fee("p5.48xlarge", unused))["plain"]
    assert row[3:6] == [Decimal("35.04"), cash, reason]


def test_a_refund_of_another_months_capacity_avoids_nothing(tmp_path: Path) -> None:
    """AWS gives back 1920.00 of a block whose fee no delivered bill has: nothing of July is unused, and none less."""
    refund = fee("p5.48xlarge", "") | {
        "line_item_usage_end_date": "2026-07-01T01:00:00.000Z",
        "line_item_line_item_type": "Refund",
        "line_item_usage_type": "USW2-CapacityBlockFee:p5.48xlarge",
        "line_item_unblended_cost": "-1920.00",
        "reservation_reservation_a_r_n": "",
    }
    assert savings(tmp_path, {"plain": {}}, refund)["plain"][3:6] == [Decimal("35.04"), Decimal("35.04"), None]
