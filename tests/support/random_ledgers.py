"""Random bills and runs for the laws: small, but of every kind of line and with amounts that are hard to share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

MONTH = "2026-07"
# The hours run over the end of a day.
FIRST = datetime(2026, 7, 14, 20)
HOURS = 6
HOUR_MS = 3_600_000
# Machine: instance type, usage kind, operation, accelerators (1 where it has none).
MACHINES = {
    "i-0a": ("p5.48xlarge", "BoxUsage", "RunInstances", 8),
    "i-0b": ("trn1.32xlarge", "SpotUsage", "RunInstances", 16),
    "i-0c": ("m5.large", "BoxUsage", "RunInstances", 1),
    "i-0d": ("p5.48xlarge", "BoxUsage", "RunInstances:CB", 8),
    "arn:aws:sagemaker:us-west-2:000033334444:training-job/j": ("ml.p4d.24xlarge", "Train", "CreateTrainingJob", 8),
}
VOLUME = "vol-0a"
BLOCK = "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5"
CHARGES = (
    "Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "SavingsPlanRecurringFee",
    "SavingsPlanUpfrontFee", "RIFee", "Fee", "Tax", "Credit", "Refund", "EdpDiscount", "NewDiscount", "SomethingNew",
)  # fmt: skip
USAGE_CHARGES = CHARGES[:3]
OTHER_USAGE = (
    ("USW2-EBS:VolumeUsage.gp3", VOLUME), ("DataTransfer-Out-Bytes", "i-0a"), ("USW2-Requests-Tier1", "bucket"),
    ("USW2-TrainWarmPool:ml.p4d.24xlarge", "job"), ("USW2-Reservation:p5.48xlarge", BLOCK),
    ("USW2-UnusedBox:p5.48xlarge", BLOCK), ("USW2-CapacityBlockFee:p5.48xlarge", ""),
    ("USW2-BoxUsage:p5.48xlarge", ""), ("ComputeSP:1yrNoUpfront", ""),
)  # fmt: skip
AMOUNTS = (
    "line_item_net_unblended_cost", "pricing_public_on_demand_cost",
    "reservation_effective_cost", "reservation_net_effective_cost",
    "reservation_unused_amortized_upfront_fee_for_billing_period", "reservation_unused_recurring_fee",
    "reservation_net_unused_recurring_fee", "savings_plan_savings_plan_effective_cost",
    "savings_plan_net_savings_plan_effective_cost", "savings_plan_total_commitment_to_date",
    "savings_plan_used_commitment",
)  # fmt: skip

# Negative, tiny, huge, and amounts no double holds.
COSTS = st.one_of(
    st.sampled_from(["0", "55.04", "-55.04", "0.0000000001", "-0.0000000003", "0.1", "1234567.8912345678"]),
    st.decimals(Decimal(-2000), Decimal(2000), places=10).map(str),
)
FEES = st.sampled_from(["0", "0.1", "36.00", "40.00", "1234.5678912345"])
PARTS_OF_AN_HOUR = st.one_of(
    st.sampled_from(["1", "1", "0.25", "0.3333333333", "0.0002777778", "0", "-0.25"]),
    st.decimals(Decimal(0), Decimal(1), places=10).map(str),
)


@dataclass(frozen=True)
class Stay:
    """A run's time on a machine; milliseconds since FIRST."""

    run_no: int
    machine: str
    accelerators: int | None
    started_ms: int
    ended_ms: int


def hour(number: int) -> dict[str, str]:
    """Start and end of the n-th hour, as bill columns."""
    start = FIRST + timedelta(hours=number)
    return {
        "line_item_usage_start_date": str(start),
        "line_item_usage_end_date": str(start + timedelta(hours=1)),
    }


def machine_line(machine: str, number: int, amount: str, cost: str, **more: str) -> dict[str, str]:
    """A line of a machine's n-th hour."""
    kind, usage, operation, _ = MACHINES[machine]
    term = {"pricing_term": "Spot"} if usage == "SpotUsage" else {}
    return {
        **hour(number),
        "line_item_usage_type": f"USW2-{usage}:{kind}",
        "line_item_operation": operation,
        "line_item_resource_id": machine,
        "line_item_usage_amount": amount,
        "line_item_unblended_cost": cost,
        "pricing_public_on_demand_cost": cost,
        **term,
        **more,
    }


@st.composite
def any_line(draw: st.DrawFn) -> dict[str, str]:
    """A line of any type, with any cost in any column, or none."""
    money = {name: draw(COSTS) for name in AMOUNTS if draw(st.integers(0, 3)) == 0}
    money["line_item_unblended_cost"] = draw(COSTS)
    payer = {"bill_payer_account_id": draw(st.sampled_from(["000011112222", "000099998888"]))}
    tag = {"tag_run_id": draw(st.sampled_from(["run-0", "run-1", "unknown"]))} if draw(st.booleans()) else {}
    number, amount = draw(st.integers(0, HOURS - 1)), draw(PARTS_OF_AN_HOUR)
    if draw(st.booleans()):
        line = machine_line(draw(st.sampled_from(list(MACHINES))), number, amount, "0")
        charge = draw(st.sampled_from(USAGE_CHARGES))
    else:
        usage, resource = draw(st.sampled_from(OTHER_USAGE))
        line = {**hour(number), "line_item_usage_type": usage, "line_item_usage_amount": amount}
        line["line_item_operation"] = draw(st.sampled_from(["RunInstances", "RunInstances:CB", "EKSPod-EC2"]))
        line |= {"line_item_resource_id": resource} if resource else {}
        line |= {"reservation_reservation_a_r_n": BLOCK} if draw(st.booleans()) else {}
        charge = draw(st.sampled_from(CHARGES))
    if charge == "SavingsPlanRecurringFee":
        # One fee is divided by the other.
        money |= {name: draw(FEES) for name in ("line_item_unblended_cost", "line_item_net_unblended_cost")}
    return {**line, **money, **payer, **tag, "line_item_line_item_type": charge}


@st.composite
def any_stay(draw: st.DrawFn) -> Stay:
    """A stay anywhere, of any number of accelerators, or on a volume: several may claim more than there is."""
    machine = draw(st.sampled_from([*MACHINES, VOLUME]))
    start = draw(st.integers(-HOUR_MS, HOURS * HOUR_MS))
    used = None if machine == VOLUME else draw(st.none() | st.integers(1, MACHINES[machine][3]))
    return Stay(draw(st.integers(0, 2)), machine, used, start, start + draw(st.integers(1, 3 * HOUR_MS)))


any_bill = st.lists(any_line(), min_size=1, max_size=14)
any_stays = st.lists(any_stay(), max_size=6, unique_by=lambda s: (s.run_no, s.machine, s.started_ms))


@st.composite
def shared_machine(draw: st.DrawFn) -> tuple[list[dict[str, str]], list[Stay]]:
    """A machine billed for every hour, on one line or several, and runs that together never hold more than it has."""
    machine = draw(st.sampled_from(["i-0a", "i-0b", "i-0c"]))
    lines = []
    for number in range(HOURS):
        for amount in draw(st.sampled_from([("1",), ("0.5", "0.5"), ("0.25", "0.0002777778", "0.7497222222")])):
            lines.append(machine_line(machine, number, amount, draw(COSTS)))
    count = MACHINES[machine][3]
    stays = []
    for run_no in range(3 if count > 1 else 1):
        start = draw(st.integers(0, (HOURS - 1) * HOUR_MS))
        end = start + draw(st.integers(2, HOURS * HOUR_MS - start))
        stays.append(Stay(run_no, machine, max(count // 4, 1), start, end))
    return lines, stays


def split(stay: Stay, at_ms: int) -> list[Stay]:
    """The stay as two that touch."""
    return [replace(stay, ended_ms=at_ms), replace(stay, started_ms=at_ms)]


def tracker(stays: Sequence[Stay], spans: Sequence[tuple[int, int, int]] = ()) -> dict[str, list[dict[str, Any]]]:
    """Tracker rows of the runs; their attempts are `spans` (run, start, end), else one a run as long as its stays."""
    spans = spans or [
        (run_no, min(stay.started_ms for stay in own), max(stay.ended_ms for stay in own))
        for run_no in sorted({stay.run_no for stay in stays})
        for own in [[stay for stay in stays if stay.run_no == run_no]]
    ]
    rows: dict[str, list[dict[str, Any]]] = {"tracker_run": [], "tracker_attempt": [], "tracker_resource": []}
    for run_no in sorted({run_no for run_no, _, _ in spans}):
        attempts = sorted((start, end) for number, start, end in spans if number == run_no)
        run = {"source_name": "jobs", "run_id": f"run-{run_no}"}
        rows["tracker_run"].append({**run, "status": "completed", **_from_to(attempts[0][0], attempts[-1][1])})
        for number, (start, end) in enumerate(attempts, start=1):
            whole = {"attempt_no": number, "end_reason": "completed", **_from_to(start, end)}
            rows["tracker_attempt"].append({**run, **whole})
            inside = [stay for stay in stays if stay.run_no == run_no and start <= stay.started_ms < end]
            rows["tracker_resource"] += [{**run, "attempt_no": number, **_resource(stay)} for stay in inside]
    return rows


def at(ms: int) -> datetime:
    """Milliseconds since FIRST as a moment."""
    return FIRST + timedelta(milliseconds=ms)


def _from_to(start: int, end: int) -> dict[str, datetime]:
    return {"started_at": at(start), "ended_at": at(end), "last_seen_at": at(end)}


def _resource(stay: Stay) -> dict[str, Any]:
    return {
        "resource_id": stay.machine,
        "instance_type": None if stay.machine == VOLUME else MACHINES[stay.machine][0],
        "accelerators_used": stay.accelerators,
        "joined_at": at(stay.started_ms),
        "left_at": at(stay.ended_ms),
        "evidence": "imds",
    }
