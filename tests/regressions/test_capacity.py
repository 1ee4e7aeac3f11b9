"""Faults that made other people's reports wrong: shared nodes, reserved capacity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.focus_exports import as_focus, focus_lines, normalized
from support.lab import Lab
from support.ledger_law import BASES, LINES_THAT_DO_NOT_SUM
from support.ledgers import ask as ask_published
from support.ledgers import publish_tables
from support.odd_lines import JOB, ask, line
from support.random_ledgers import BLOCK, MONTH, VOLUME, Stay, at, machine_line, tracker
from support.stories import build_story

from pipelines.ingest.billing.columns import CUR, FOCUS
from pipelines.models.build import Builder, FailedChecks
from pipelines.models.contract import load_contract
from pipelines.models.warnings import failed_checks, sentence

HOUR_MS = 3_600_000
HOUR = timedelta(hours=1)


def test_a_job_of_many_instances_charged_to_its_run_in_part() -> None:
    """T11: a SageMaker job on four instances is one resource; its run pays all of it, two runs share it."""
    stays = [Stay(0, JOB, None, 600_000, HOUR_MS)]
    stays += [Stay(run, JOB, None, HOUR_MS + 600_000, 2 * HOUR_MS) for run in (1, 2)]
    bill = [machine_line(JOB, number, "4", "100") for number in (0, 1)]
    cost = "select run_id, sum(effective_cost_usd) from fct_ledger group by 1 order by 1"
    assert ask(cost, "fct_ledger", bill=bill, stays=stays) == [("run-0", 100), ("run-1", 50), ("run-2", 50)]


def test_a_run_that_comes_back_to_its_machine_held_it_once_before_the_next_month() -> None:
    """In July it has the machine for two hours, with one between; for August that is one earlier holder."""
    stays = [Stay(0, "i-0a", None, 0, HOUR_MS), Stay(0, "i-0a", None, 2 * HOUR_MS, 3 * HOUR_MS)]
    later = machine_line("i-0c", 31 * 24, "1", "0.1")
    bill = {MONTH: [machine_line("i-0a", number, "1", "80") for number in range(3)], "2026-08": [later]}
    earlier = "select resource_id from stg_tracker__stay_monthly where stay_kind = 'earlier' and resource_id > ''"
    with Lab(bill, tracker(stays)) as lab:
        assert lab.ask(f"{earlier} and billing_period = '2026-08'", "stg_tracker__stay_monthly") == [("i-0a",)]
        cost = "select sum(effective_cost_usd) from fct_ledger where bucket = 'run'"
        assert lab.ask(cost, "fct_ledger") == [(160,)]


def test_a_run_on_two_families_is_mixed() -> None:
    """An hour on NVIDIA and one on Trainium: its cost is that of neither."""
    stays = [Stay(0, "i-0a", None, 0, HOUR_MS), Stay(0, "i-0b", None, HOUR_MS, 2 * HOUR_MS)]
    bill = [machine_line("i-0a", 0, "1", "80"), machine_line("i-0b", 1, "1", "21.5")]
    found = ask("select accelerator_family from fct_run_cost", "fct_run_cost", bill=bill, stays=stays)
    assert found == [("mixed",)]


def test_a_day_of_a_file_system_has_the_same_rest_as_its_hours() -> None:
    """24 hours for 24.00; run-0 has it for the first 12, run-1 for 6 of them. No run has it for the other 12: 12.00.

    By the day they share the 12.00 by 12 and 6 hours, 8 and 4. By the hour run-0 has 6.00 alone and half of 6 hours.
    """
    stays = [Stay(0, VOLUME, None, 0, 12 * HOUR_MS), Stay(1, VOLUME, None, 6 * HOUR_MS, 12 * HOUR_MS)]
    disk = {"line_item_usage_type": "USW2-EBS:VolumeUsage.gp3", "line_item_resource_id": VOLUME}

    def part(start: int, hours: int) -> dict[str, str]:
        begun, ended = str(at(start * HOUR_MS)), str(at((start + hours) * HOUR_MS))
        times = {"line_item_usage_start_date": begun, "line_item_usage_end_date": ended}
        return {**disk, **times, "line_item_usage_amount": "1", "line_item_unblended_cost": str(hours)}

    cost = "select coalesce(run_id, bucket), sum(effective_cost_usd) from fct_ledger group by 1 order by 1"
    by_day = ask(cost, "fct_ledger", bill=[part(0, 24)], stays=stays)
    assert by_day == [("run-0", 8), ("run-1", 4), ("shared", 12)]
    by_hour = ask(cost, "fct_ledger", bill=[part(start, 1) for start in range(24)], stays=stays)
    assert by_hour == [("run-0", 9), ("run-1", 3), ("shared", 12)]


def test_a_machine_without_a_type_that_is_not_on_the_bill_keeps_its_run_unknown_and_no_other(tmp_path: Path) -> None:
    """r-2 records a machine without its type, and AWS bills no such machine: its cost is unknown, r-1 costs 110.08."""
    lines = [instance_hour(f"2026-07-14T{clock}", "i-0a", "p5.48xlarge", "55.04") for clock in (10, 11)]
    began, lasts = datetime(2026, 7, 14, 10), timedelta(hours=2)
    untyped = one_attempt("r-2", ["i-0b"], "", began, lasts)
    for event in untyped:
        event.pop("instance_type", None)
    runs = write_events(tmp_path / "runs", [*one_attempt("r-1", ["i-0a"], "p5.48xlarge", began, lasts), *untyped])
    config = write_config(tmp_path, billing=write_export(tmp_path, {"2026-07": lines}), runs=runs)
    figures = "select run_id, is_billed, instance_type, accelerator_family, effective_cost_usd from mart_run_cost"
    assert ask_published(publish_tables(config, ("mart_run_cost",)), f"{figures} order by 1").rows() == [
        ("r-1", True, "p5.48xlarge", "gpu", Decimal("110.08")),
        ("r-2", False, "unknown", "unknown", None),
    ]


def test_an_instance_type_that_names_its_purpose_is_that_type() -> None:
    """AWS writes ml.p4d.24xlarge-Training as the type of a job: its run is of ml.p4d.24xlarge, on GPUs."""
    job = machine_line(JOB, 0, "1", "39", product_instance_type="ml.p4d.24xlarge-Training")
    found = ask(
        "select instance_type, accelerator_family, accelerator_count from fct_run_machine",
        "fct_run_machine",
        bill=[job],
        stays=[Stay(0, JOB, None, 0, HOUR_MS)],
    )
    assert found == [("ml.p4d.24xlarge", "gpu", 8)]


def test_a_cluster_billed_as_one_resource() -> None:
    """T11: a HyperPod cluster may stand under one name; a run of two of its four nodes has half of its hour."""
    cluster = "arn:aws:sagemaker:us-west-2:000033334444:cluster/c"
    bill = [line("USW2-Cluster:ml.p5.48xlarge", cluster, "", "AmazonSageMaker", amount="4")]
    rows = tracker([Stay(0, "i-0a", 16, 0, HOUR_MS)])
    rows["tracker_resource"][0] |= {"resource_id": cluster, "instance_type": "ml.p5.48xlarge"}
    with Lab({MONTH: bill}, rows) as lab:
        found = lab.ask("select bucket, sum(accelerator_hours) from fct_ledger group by 1 order by 1", "fct_ledger")
    assert found == [("idle", 16), ("run", 16)]


def test_what_is_shared_out_adds_up_to_something_else() -> None:
    """T14: run + idle + the rest is the bill on every basis, and sharing out only moves money: its sum is 0."""
    bill = [
        machine_line("i-0a", 0, "1", "55.0400000001"),
        machine_line("i-0d", 1, "1", "0"),
        line("USW2-CapacityBlockFee:p5.48xlarge", "", "", "AmazonEC2", line_item_line_item_type="Fee",
             reservation_reservation_a_r_n=BLOCK, line_item_unblended_cost="996.672"),
        line("USW2-UnusedBox:trn1.32xlarge", BLOCK, "RunInstances", "AmazonEC2"),
    ]  # fmt: skip
    stays = [Stay(0, "i-0a", 3, 0, HOUR_MS), Stay(1, "i-0d", None, HOUR_MS, HOUR_MS + 100)]
    window = {"reservation_id": "cr-0b10c5", "part_no": 1, "reservation_kind": "capacity_block", "instance_count": 1}
    window |= {"started_at": at(0) + timedelta(minutes=30), "ended_at": at(0) + timedelta(hours=7)}
    with Lab({MONTH: bill}, tracker(stays), [window]) as lab:
        pieces = ("fct_charge", "fct_ledger")
        assert lab.ask(LINES_THAT_DO_NOT_SUM, *pieces) == []
        moved = ", ".join(f"sum({basis}) - sum(of_line_{basis})" for basis in BASES[1:])
        both = (
            "select 0 as of_line_effective_cost_usd, 0 as of_line_billed_cost_usd, effective_cost_usd, billed_cost_usd "
            "from fct_ledger union all "
            "select effective_cost_usd, billed_cost_usd, 0, 0 from stg_aws__line_item"
        )
        assert lab.ask(f"select {moved} from ({both})", "fct_ledger", "stg_aws__line_item") == [(0, 0)]
        (total,) = lab.ask(
            "select sum(effective_cost_usd) filter (where bucket = 'run') + "
            "sum(effective_cost_usd) filter (where bucket = 'idle') + "
            "sum(effective_cost_usd) filter (where bucket not in ('run', 'idle')) from fct_ledger",
            "fct_ledger",
        )
    # 55.0400000001 + 996.672 + 10 for the unused hour of a reservation.
    assert total == (Decimal("1061.7120000001"),)


def test_a_reservation_reported_twice(tmp_path: Path) -> None:
    """T17: the same block in two files is one block; a block's fee is not charged once for each file."""
    story = Path(__file__).parents[1] / "golden" / "capacity_block_still_running"
    copy = tmp_path / "story"
    copy.mkdir()
    for path in story.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    held = (copy / "reservations.csv").read_text()
    (copy / "reservations.csv").write_text(held + held.splitlines()[1] + "\n")
    builder = build_story(copy, tmp_path, ["fct_ledger"])
    with builder.open(["fct_ledger"]) as engine:
        assert engine.query("select sum(effective_cost_usd) from fct_ledger").item() == Decimal("5880")


MINUTE_MS = HOUR_MS // 60
# What two runs claim of a node's hour at 80 dollars (accelerators, from, to); what each pays and what is idle, of which
# the sum is billed; whether they claim more than there is.
Claim = tuple[int | None, int, int]
OF_CASE = "coalesce('run-' || right(run_id, 1), bucket)"
WHOLE: Claim = (8, 0, HOUR_MS)
CLAIMS: dict[str, tuple[list[Claim], list[Decimal | int], bool]] = {
    # T11: 6/8 of 80; 2/8 of the first half; the rest.
    "one for half of the hour": ([(6, 0, HOUR_MS), (2, 0, HOUR_MS // 2)], [60, 10, 10], False),
    "both the whole node": ([WHOLE, WHOLE], [40, 40, 0], True),
    # The first half hour is run-0's alone: 40 + 20 and 20.
    "one joins later": ([WHOLE, (None, HOUR_MS // 2, HOUR_MS)], [60, 20, 0], True),
    # Both leave after 15 minutes, which cost 20; the other 45 stay idle.
    "idle afterwards": ([(8, 0, 15 * MINUTE_MS)] * 2, [10, 10, 60], True),
    # Half an hour at 6 of 12 claimed, then 6 of 8: 20 + 30, 20, and 10.
    "four too many": ([(6, 0, HOUR_MS), (6, 0, HOUR_MS // 2)], [50, 20, 10], True),
    "one after the other": ([(8, 0, HOUR_MS // 2), (8, HOUR_MS // 2, HOUR_MS)], [40, 40, 0], False),
    # 30 s more than there are: 60.5 minutes are fitted to 60, and 80 x 30.5 / 60.5 = 40.3305785.
    "clocks differ by seconds": (
        [(8, 0, HOUR_MS // 2 + 30_000), (8, HOUR_MS // 2, HOUR_MS)],
        [Decimal("40.33058"), Decimal("39.66942"), 0],
        False,
    ),
    # Half an hour was billed, 40; each claims another half of the hour and pays half of that.
    "more time than was billed": ([(8, 0, HOUR_MS // 2), (8, HOUR_MS // 2, HOUR_MS)], [20, 20, 0], True),
    "the other uses none": ([WHOLE, (0, 0, HOUR_MS)], [80, 0, 0], False),
    "one run, more than there are": ([(9, 0, HOUR_MS)], [80, 0, 0], False),
}


def on_nodes(cases: Iterable[Sequence[Claim]], instance_type: str = "p5.48xlarge") -> dict[str, list[dict[str, Any]]]:
    """The runs of each case on a node of its own; run-0 and run-1 of the third are run-20 and run-21 on i-2."""
    rows = tracker(
        [Stay(10 * node + run, "i-0a", *claim) for node, case in enumerate(cases) for run, claim in enumerate(case)]
    )
    for row in rows["tracker_resource"]:
        node = int(row["run_id"].removeprefix("run-")) // 10
        row |= {"resource_id": f"i-{node}", "instance_type": instance_type}
    return rows


def node_line(node: int, amount: str, cost: str, **more: str) -> dict[str, str]:
    return machine_line("i-0a", 0, amount, cost, **more) | {"line_item_resource_id": f"i-{node}"}


@cache
def shared_out() -> tuple[dict[tuple[str, str], Decimal], dict[str, bool]]:
    """What a node's runs pay and what of it is idle, and whether it is overbooked."""
    costs = f"select resource_id, {OF_CASE}, sum(effective_cost_usd) from fct_ledger group by 1, 2"
    flags = "select resource_id, bool_or(is_overbooked) from fct_resource_share_hourly group by 1"
    billed = [sum(Decimal(cost) for cost in paid) for _, paid, _ in CLAIMS.values()]
    bill = [node_line(node, str(cost / 80), str(cost)) for node, cost in enumerate(billed)]
    with Lab({MONTH: bill}, on_nodes(claims for claims, _, _ in CLAIMS.values())) as lab:
        paid = {(node, name): cost for node, name, cost in lab.ask(costs, "fct_ledger")}
        return paid, dict(lab.ask(flags, "fct_resource_share_hourly"))


@pytest.mark.parametrize("case", CLAIMS)
def test_runs_that_claim_more_of_a_machine_than_it_has(case: str) -> None:
    """T23: they share each moment by the accelerators they claim; what none claims is idle, and never negative."""
    (_, cost, is_overbooked), number = CLAIMS[case], [*CLAIMS].index(case)
    costs, flags = shared_out()
    found = [costs.get((f"i-{number}", name), Decimal(0)) for name in ("run-0", "run-1", "idle")]
    assert (sum(found), flags[f"i-{number}"]) == (sum(cost), is_overbooked)
    assert found == pytest.approx(cost, abs=Decimal("0.00001"))


# 1.467222 hours at 3.06 an hour are 4.48969932 for an hour of one GPU. Half of it is 2.24484966, a quarter 1.12242483.
OVERFULL = {
    "no run": ([], [("unattributed", "4.48969932", "1.467222")]),
    "a run of the whole hour": ([(1, 0, HOUR_MS)], [("run-0", "4.48969932", "1.467222")]),
    "a run of half of it": (
        [(1, 0, HOUR_MS // 2)],
        [("idle", "2.24484966", "0.733611"), ("run-0", "2.24484966", "0.733611")],
    ),
    "a run of a quarter, without a count": (
        [(None, 0, HOUR_MS // 4)],
        [("idle", "3.36727449", "1.1004165"), ("run-0", "1.12242483", "0.3668055")],
    ),
    "two runs, one after the other": (
        [(1, 0, HOUR_MS // 2), (1, HOUR_MS // 2, HOUR_MS)],
        [("run-0", "2.24484966", "0.733611"), ("run-1", "2.24484966", "0.733611")],
    ),
}


@cache
def overfull() -> tuple[dict[str, list[tuple]], set[str]]:
    """What the lines of each node are shared out to, and the nodes that the warning names."""
    machine = {"line_item_usage_type": "USW2-SpotUsage:p3.2xlarge", "product_instance_type": "p3.2xlarge"}
    bill = [node_line(node, "1.467222", "4.48969932", **machine) for node in range(len(OVERFULL))]
    paid = f"{OF_CASE}, sum(effective_cost_usd), sum(accelerator_hours), min(effective_cost_usd) > 0"
    found: dict[str, list[tuple]] = {}
    with Lab({MONTH: bill}, on_nodes((claims for claims, _ in OVERFULL.values()), "p3.2xlarge")) as lab:
        for node, *share in lab.ask(
            f"select resource_id, {paid} from fct_ledger group by 1, 2 order by 2", "fct_ledger"
        ):
            found.setdefault(node, []).append(tuple(share))
        assert lab.ask(LINES_THAT_DO_NOT_SUM, "fct_ledger_line", "fct_charge") == []
        assert failing(lab, "fct_resource_share_hourly") == {}
        warned = failing(lab, "fct_resource_hourly")
    assert [*warned] == ["an_instance_is_billed_for_part_of_another_hour"]
    return found, {node for (rows,) in [warned.values()] for _, _, node, *_ in rows}


@pytest.mark.parametrize("case", OVERFULL)
def test_a_line_of_more_than_its_hour_is_shared_out_as_the_hour_is(case: str) -> None:
    """AWS bills Spot lines of 1.467222 hours within an hour: who used the hour pays the whole line, once."""
    shares, warned = overfull()
    node = f"i-{[*OVERFULL].index(case)}"
    assert shares[node] == [(name, Decimal(cost), Decimal(hours), True) for name, cost, hours in OVERFULL[case][1]]
    assert node in warned


# Further lines of an hour of i-0a that costs 2.00: hours and cost of each; then what the run of its first half pays.
CORRECTED = {
    # A quarter of the hour is taken back: the run used 30 of the 45 minutes that remain, 2/3 of 1.50.
    "time and money back": ([("-0.25", "-0.50")], "1.0000000000"),
    "money back, without hours": ([("0", "-0.50")], "0.7500000000"),
    "money on top, without hours": ([("0", "0.50")], "1.2500000000"),
    "all of it back": ([("-1", "-2.00")], "0.0000000000"),
    # Taken back and billed anew at 1.50.
    "billed anew": ([("-1", "-2.00"), ("1", "1.50")], "0.7500000000"),
}


@cache
def corrected(is_focus: bool) -> list[dict[str, dict[str, list[Decimal]]]]:
    """What each node's hour is shared out to by bucket, in pieces and in whole lines."""
    cases = [[("1", "2.00"), *more] for more, _ in CORRECTED.values()]
    bill = [node_line(node, *line) for node, lines in enumerate(cases) for line in lines]
    listed = CUR
    if is_focus:
        bill, listed = normalized(focus_lines(as_focus(bill), MONTH)), FOCUS
    sql = "select resource_id, bucket, sum(effective_cost_usd), sum(list_cost_usd), sum(billed_cost_usd) from {} "
    with Lab({MONTH: bill}, on_nodes([[(8, 0, HOUR_MS // 2)]] * len(cases)), listed=listed) as lab:
        assert lab.ask(LINES_THAT_DO_NOT_SUM, "fct_ledger", "fct_charge") == []
        assert failing(lab, "fct_resource_hourly") == {}
        both: list[dict[str, dict[str, list[Decimal]]]] = [{}, {}]
        for paid, table in zip(both, ("fct_ledger", "fct_ledger_line"), strict=True):
            for node, bucket, *costs in lab.ask(sql.format(table) + "group by 1, 2", table):
                paid.setdefault(node, {})[bucket] = costs
    return both


@pytest.mark.parametrize("case", CORRECTED)
@pytest.mark.parametrize("is_focus", [False, True])
def test_what_corrects_an_hour_is_shared_out_as_the_hour_is(case: str, is_focus: bool) -> None:
    """Design 3.6: the lines of a resource and hour are summed; whose the hour is, theirs is what corrects it."""
    more, expected = CORRECTED[case]
    whole = Decimal("2.00") + sum(Decimal(cost) for _, cost in more)
    shares = {"run": [Decimal(expected)] * 3, "idle": [whole - Decimal(expected)] * 3}
    node = f"i-{[*CORRECTED].index(case)}"
    assert [paid[node] for paid in corrected(is_focus)] == [shares, shares]


def test_a_correction_of_an_hour_that_is_on_no_line_is_of_the_whole_hour() -> None:
    """Facts 4.3: where the running seconds are unknown, a run's part is its overlap / 3600: a quarter of -2.00."""
    with Lab({MONTH: [machine_line("i-0a", 0, "-1", "-2.00")]}, tracker([Stay(0, "i-0a", 8, 0, HOUR_MS // 4)])) as lab:
        paid = lab.ask("select bucket, effective_cost_usd from fct_ledger order by 1", "fct_ledger")
        hours = lab.ask("select accelerator_hours from mart_run_cost", "mart_run_cost")
    assert paid == [("idle", Decimal("-1.50")), ("run", Decimal("-0.50"))]
    # A quarter of 8 accelerators; a warning names the run, and the build goes on.
    assert hours == [(Decimal(-2),)]
    checks = {one.name: one.severity for one in load_contract("marts/mart_run_cost").checks}
    assert checks["accelerator_hours_not_negative"] == "warn"


def late_hour(machine: str, started_at: datetime, file: str, **more: str) -> dict[str, str]:
    """An hour of a machine at 2.00 in a file of its own month's bill or of the next one's."""
    from_to = {"line_item_usage_start_date": str(started_at), "line_item_usage_end_date": str(started_at + HOUR)}
    return machine_line(machine, 0, "1", "2.00", **from_to, source_file=file, **more)


def test_usage_that_the_next_bill_has_is_its_times() -> None:
    """Design 3.6: run-0 holds i-0a on 31 July from 22:00 to midnight; its last hour is on August's bill, as is 20:00.

    So the run costs 2 x 2.00. The hour before it and the one after midnight, in which the machine stays up, are idle;
    what it is billed for at 02:00, after a gap, is no run's. A run that a tag names has the late hour of i-0b, 2.00.
    """
    night = datetime(2026, 8, 1)
    july = [late_hour("i-0a", night - 2 * HOUR, "july")]
    august = [late_hour("i-0a", night + hours * HOUR, "august") for hours in (-4, -1, 0, 2)]
    august.append(late_hour("i-0b", night - HOUR, "august", tag_run_id="run-1"))
    stays = [Stay(0, "i-0a", None, since_first(night - 2 * HOUR), since_first(night))]
    alive = [(0, stays[0].started_ms, stays[0].ended_ms), (1, stays[0].started_ms, stays[0].ended_ms)]
    with Lab({"2026-07": july, "2026-08": august}, tracker(stays, alive)) as lab:
        who = "resource_id, coalesce(run_id, bucket)"
        paid = lab.ask(f"select {who}, sum(effective_cost_usd) from fct_ledger group by all order by all", "fct_ledger")
        assert paid == [
            ("i-0a", "idle", Decimal(4)),
            ("i-0a", "run-0", Decimal(4)),
            ("i-0a", "unattributed", Decimal(2)),
            ("i-0b", "run-1", Decimal(2)),
        ]
        assert lab.ask(LINES_THAT_DO_NOT_SUM, "fct_ledger", "fct_charge") == []
        august_alone = "select count(*) from {} where billing_period = '2026-08' and run_id = 'run-0'"
        for table in ("detail_claim_gap_monthly", "detail_clock_offset_monthly"):
            assert lab.ask(august_alone.format(table), table) == [(0,)]
        gap = "detail_claim_gap_monthly"
        assert lab.ask(f"select run_id from {gap} where gap_kind = 'claimed_not_billed'", gap) == []
        # Idle are 20:00 of July and midnight of August, on one bill; unattributed is 02:00.
        unclaimed = f"select billing_period, gap_hours, cost_at_stake_usd from {gap} order by 1"
        assert lab.ask(unclaimed, gap) == [("2026-07", 8, 2), ("2026-08", 16, 4)]


def test_a_gap_in_hours_of_a_capacity_block_is_worth_their_part_of_its_fee() -> None:
    """Two hours for a fee of 80, free on the bill. The run has the first, and claims an hour after the second; no run
    claims that one: 40 each. Without the fee neither is known.
    """
    hours = [machine_line("i-0d", number, "1", "0") for number in (0, 1)]
    fee = {
        **machine_line("i-0a", 0, "1", "80"),
        "line_item_line_item_type": "Fee",
        "line_item_usage_type": "USW2-CapacityBlockFee:p5.48xlarge",
        "reservation_reservation_a_r_n": BLOCK,
    }
    stays = [Stay(0, "i-0d", None, 0, HOUR_MS), Stay(0, "i-0d", None, 2 * HOUR_MS, 3 * HOUR_MS)]
    gap = "detail_claim_gap_monthly"
    found = f"select gap_kind, gap_hours, cost_at_stake_usd from {gap} order by 1"
    for bill, dollars in ([*hours, fee], 40), (hours, None):
        with Lab({MONTH: bill}, tracker(stays)) as lab:
            assert lab.ask(found, gap) == [("billed_not_claimed", 8, dollars), ("claimed_not_billed", 8, dollars)]


def test_the_time_of_a_run_in_a_month_without_a_bill_is_a_gap() -> None:
    """A run has a machine of 8 GPUs at 2.00 an hour from two hours before July to three hours after it.

    Without the bills of June and August it lacks two and three hours: 16 GPU-hours at 4.00 and 24 at 6.00. With them it
    lacks none; nor does one that ended half a minute after July, or that is of August alone.
    """
    first, last = datetime(2026, 7, 1), datetime(2026, 8, 1)
    half = timedelta(seconds=30)
    stays = [
        Stay(0, "i-0a", None, since_first(first - 2 * HOUR), since_first(last + 3 * HOUR)),
        Stay(1, "i-0b", None, since_first(last - HOUR), since_first(last + half)),
        Stay(2, "i-0b", None, since_first(last + HOUR), since_first(last + 2 * HOUR)),
    ]
    hours = (last - first) // HOUR
    july = [late_hour("i-0a", first + number * HOUR, "july") for number in range(hours)]
    july.append(late_hour("i-0b", last - HOUR, "july"))
    other = {
        "2026-06": [late_hour("i-0a", first - number * HOUR, "june") for number in (1, 2)],
        "2026-08": [late_hour("i-0a", last + number * HOUR, "august") for number in range(3)]
        + [late_hour("i-0b", last + number * HOUR, "august") for number in (0, 1)],
    }
    gap = "detail_claim_gap_monthly"
    found = (
        f"select billing_period, run_id, gap_hours, cost_at_stake_usd from {gap} where run_id <> 'no run' order by 1"
    )
    with Lab({"2026-07": july}, tracker(stays)) as lab:
        assert lab.ask(found, gap) == [("2026-06", "run-0", 16, 4), ("2026-08", "run-0", 24, 6)]
    with Lab({"2026-07": july, **other}, tracker(stays)) as lab:
        assert lab.ask(found, gap) == []


def since_first(moment: datetime) -> int:
    """A moment in milliseconds since that of `at(0)`."""
    return (moment - at(0)) // timedelta(milliseconds=1)


def failing(lab: Lab, table: str) -> dict[str, list[tuple]]:
    """The rows that checks of a table find, by the check."""
    checks = [made for made in load_contract(f"core/{table}").checks if made.kind == "rows"]
    tables = (table, "stg_tracker__stay_monthly", "fct_resource_hourly", "fct_charge")
    found = {made.name: lab.ask(made.query.format(batch=table), *tables) for made in checks}
    return {name: rows for name, rows in found.items() if rows}


def test_a_line_of_more_than_its_hour_is_published_with_a_warning_and_one_counted_twice_is_not(tmp_path: Path) -> None:
    """The warning states dollars, owner and what to do; the month is published.

    T23: 0.9 hours twice are 1.8 of one hour, which no machine has, though they are less than two: nothing is published.
    """

    def deliver(*hours: str) -> Builder:
        lines = [instance_hour("2026-07-10T10", "i-gpu", "p3.2xlarge", "3.06", amount) for amount in hours]
        export = write_export(tmp_path, {"2026-07": lines}, execution=f"20260801T000000Z-{len(hours)}")
        return publish_tables(write_config(tmp_path, billing=export), ("mart_cost_ledger_daily",))

    (warned,) = [
        sentence(check)
        for check in failed_checks(deliver("1.467222").lake.publications.newest().checks, "warn")
        if check["table"] == "fct_resource_hourly"
    ]
    assert "an instance is billed for part of another hour: 1 row of fct_resource_hourly 2026-07" in warned
    assert "resource i-gpu" in warned and "billed hours 1.47" in warned and "effective cost $4.49" in warned
    assert "Nothing is lost: who used the hour pays all of it." in warned and warned.endswith("Owner: ml-finops.")
    with pytest.raises(FailedChecks, match="an instance is billed for more than the hour"):
        deliver("0.9", "0.9")
    assert [path.name for path in (tmp_path / "warehouse/publications").glob("*.json")] == ["000001.json"]


def test_a_machine_that_its_run_calls_by_another_type() -> None:
    """T11: the bill has a p5.48xlarge where the run has p5.4xlarge, and so takes one of its eight GPUs; a warning.

    Of run-10, which has the type of the bill, there is none.
    """
    rows = on_nodes([[(None, 0, HOUR_MS)]] * 2)
    rows["tracker_resource"][0]["instance_type"] = "p5.4xlarge"
    with Lab({MONTH: [node_line(node, "1", "80") for node in (0, 1)]}, rows) as lab:
        found = failing(lab, "fct_resource_share_hourly")
    assert found["machine_of_another_type_on_the_bill_than_in_its_run"] == [
        ("run-0", "i-0", "p5.4xlarge", "p5.48xlarge")
    ]
