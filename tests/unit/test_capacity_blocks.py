"""What a Capacity Block's hours cost in the cases without a story, through the real SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from support.lab import Lab
from support.ledger_law import LINES_THAT_DO_NOT_SUM
from support.random_ledgers import BLOCK, MONTH, Stay, at, hour, tracker

from pipelines.models.contract import load_contract

HOUR_MS = 3_600_000
OTHER = BLOCK.replace("cr-0b10c5", "cr-0e1f")


def fee(cost: str, block: str = BLOCK, charge: str = "Fee") -> dict[str, str]:
    named = {"reservation_reservation_a_r_n": block} if block else {}
    return {
        **hour(0),
        **named,
        "line_item_line_item_type": charge,
        "line_item_usage_type": "USW2-CapacityBlockFee:p5.48xlarge",
        "line_item_unblended_cost": cost,
    }


def used(number: int, machine: str = "i-0d", amount: str = "1", **more: str) -> dict[str, str]:
    return {
        **hour(number),
        "line_item_usage_type": "USW2-BoxUsage:p5.48xlarge",
        "line_item_operation": "RunInstances:CB",
        "line_item_resource_id": machine,
        "line_item_usage_amount": amount,
        "line_item_unblended_cost": "0",
        **more,
    }


def window(hours: int, count: int | None, block: str = "cr-0b10c5") -> dict[str, Any]:
    held = {"reservation_id": block, "part_no": 1, "reservation_kind": "capacity_block", "instance_count": count}
    return {**held, "started_at": at(0), "ended_at": at(hours * HOUR_MS)}


def ask(
    sql: str,
    name: str,
    bill: Sequence[Mapping[str, str]],
    *windows: Mapping[str, Any],
    runs: Mapping[str, Any] | None = None,
) -> list[tuple]:
    stays = [Stay(0, "i-0d", None, 0, HOUR_MS)]
    with Lab({MONTH: bill}, runs or tracker(stays), windows) as lab:
        return lab.ask(sql, name)


RUN = "select sum(effective_cost_usd) from fct_ledger where run_id = 'run-0'"


def test_a_premium_operating_system_is_paid_on_top_of_the_fee() -> None:
    bill = [fee("40"), used(0, line_item_operation="RunInstances:0002:CB", line_item_unblended_cost="3.25")]
    # A quarter of the block's four hours, and the licence.
    assert ask(RUN, "fct_ledger", bill, window(4, 1)) == [(Decimal("13.25"),)]


def test_instances_that_were_not_counted_are_those_the_bill_shows_at_once() -> None:
    bill = [fee("80"), used(0), used(0, "i-0e"), used(1)]
    # Two instances for four hours: 10 an instance-hour.
    assert ask(RUN, "fct_ledger", bill, window(4, None)) == [(10,)]


def test_more_use_than_the_window_holds_is_reported_and_shares_the_hour() -> None:
    bill = [fee("40"), used(0), used(0, "i-0e"), used(5, "i-0e")]
    (check,) = [c for c in load_contract("core/fct_capacity_block_piece").checks if "beyond" in c.name]
    query = check.query.format(batch="fct_capacity_block_piece")
    found = ask(query, "fct_capacity_block_piece", bill, window(4, 1))
    # Two machines in the one's first hour, and one after the block's end at 24:00.
    first, after = datetime(2026, 7, 14, 20), datetime(2026, 7, 15, 1)
    assert sorted(found) == [("cr-0b10c5", "i-0d", first), ("cr-0b10c5", "i-0e", first), ("cr-0b10c5", "i-0e", after)]
    assert check.severity == "warn"
    assert ask(RUN, "fct_ledger", bill, window(4, 1)) == [(5,)]


def test_hours_that_no_fee_pays_for_are_reported() -> None:
    bill = [used(0), used(1), fee("40", OTHER)]
    (check,) = [c for c in load_contract("core/fct_capacity_block_piece").checks if "no_fee" in c.name]
    arn = {"capacity_reservation_capacity_reservation_arn": BLOCK}
    bill = [{**bill[0], **arn}, {**bill[1], **arn}, bill[2]]
    with Lab({MONTH: bill}, tracker([Stay(0, "i-0d", None, 0, HOUR_MS)])) as lab:
        found = lab.ask(check.query.format(batch="fct_capacity_block_piece"), "fct_capacity_block_piece", "fct_charge")
    assert found == [("000033334444", "p5.48xlarge", "i-0d", datetime(2026, 7, 14, 20), 2)]


def test_the_cost_of_hours_that_no_fee_pays_for_is_unknown() -> None:
    """The run has an hour with a premium operating system of 3.25, and 1.00 of bytes sent; 5.00 of a block's fee came
    back, and the fee itself is on no delivered bill. What the hour cost is unknown, on the bill it is 4.25, and the
    ledger keeps all that the bill has, 3.25 + 1.00 - 5.00 = -0.75. What the second hour cost, idle, is unknown too.
    """
    arn = {"capacity_reservation_capacity_reservation_arn": BLOCK}
    sent = {**hour(0), "line_item_usage_type": "USW2-DataTransfer-Out-Bytes", "line_item_resource_id": "i-0d"}
    bill = [
        used(0, line_item_operation="RunInstances:0002:CB", line_item_unblended_cost="3.25", **arn),
        {**sent, "line_item_unblended_cost": "1", "line_item_usage_amount": "1"},
        {**used(1), **arn},
        fee("-5", charge="Refund"),
    ]
    run, ledger, mart = "fct_run_cost", "fct_ledger", "mart_cost_ledger_daily"
    with Lab({MONTH: bill}, tracker([Stay(0, "i-0d", None, 0, HOUR_MS)])) as lab:
        costs = "accelerator_hours, effective_cost_usd, billed_cost_usd"
        assert lab.ask(f"select is_billed, {costs} from {run}", run) == [(True, 8, None, None)]
        sums = "sum(accelerator_hours), sum(effective_cost_usd), sum(billed_cost_usd)"
        assert lab.ask(f"select {sums} from {ledger}", ledger) == [(16, Decimal("-0.75"), Decimal("-0.75"))]
        idle = f"select is_cost_unknown, {costs} from {mart} where bucket = 'idle' and accelerator_hours > 0"
        assert lab.ask(idle, mart) == [(True, 8, None, 0)]
        advice = "detail_checkpoint_advice"
        ((lacks,),) = lab.ask(f"select missing_evidence from {advice}", advice)
        # It has bill lines.
        assert lacks.endswith("; the cost of the run is unknown")


def test_use_of_a_block_that_no_fee_can_be_matched_with_is_of_unknown_cost() -> None:
    """A day's line without a resource, 24 hours with the run's tag: it may be of any block, so what the run cost is
    unknown with the fee of 40 on the bill or without it, never 0. The ledger keeps the 40 once.
    """
    day = {"line_item_usage_start_date": "2026-07-14 00:00:00", "line_item_usage_end_date": "2026-07-15 00:00:00"}
    line = {**used(0, "", "24"), **day, "tag_run_id": "run-0"}
    del line["line_item_resource_id"]
    (check,) = [c for c in load_contract("core/fct_capacity_block_piece").checks if "no_fee" in c.name]
    for bill, paid in ([line], None), ([line, fee("40")], 40):
        with Lab({MONTH: bill}, tracker([Stay(0, "i-0d", None, 0, HOUR_MS)])) as lab:
            costs = "accelerator_hours, effective_cost_usd, billed_cost_usd"
            assert lab.ask(f"select {costs} from fct_run_cost", "fct_run_cost") == [(192, None, None)]
            assert lab.ask("select sum(effective_cost_usd) from fct_ledger", "fct_ledger") == [(paid,)]
            shown = "select effective_cost_usd from fct_ledger_line where bucket = 'run'"
            assert lab.ask(shown, "fct_ledger_line") == [(None,)]
            found = lab.ask(
                check.query.format(batch="fct_capacity_block_piece"), "fct_capacity_block_piece", "fct_charge"
            )
            assert found == [("000033334444", "p5.48xlarge", None, datetime(2026, 7, 14), 1)]


def test_unused_hours_of_a_block_without_its_fee_are_of_unknown_cost() -> None:
    unused = {"line_item_usage_type": "USW2-UnusedBox:p5.48xlarge", "line_item_resource_id": BLOCK}
    name = "mart_cost_ledger_daily"
    cost = f"select is_cost_unknown, sum(effective_cost_usd) from {name} where bucket = 'capacity_unused' group by 1"
    assert ask(cost, name, [{**used(0), **unused}]) == [(True, None)]
    assert ask(cost, name, [{**used(0), **unused}, fee("40")]) == [(False, 40)]


def test_a_block_of_which_the_bill_has_no_time_keeps_its_fee_unused() -> None:
    """A line of its unused time with an amount of 0 shows neither instances nor a window; the price would fit."""
    none = {**used(0, amount="0"), "line_item_usage_type": "USW2-UnusedBox:p5.48xlarge", "line_item_resource_id": BLOCK}
    cost = "select sum(effective_cost_usd) from fct_ledger where bucket = 'capacity_unused'"
    assert ask(cost, "fct_ledger", [fee("40"), none]) == [(40,)]


def test_the_fee_of_an_ultraserver_pays_for_the_hours_of_its_instances() -> None:
    """Facts 3.5: u-p6e-gb200x72 is of p6e-gb200.36xlarge. Two used hours of 4800.00, one of them the run's; how many of
    its instances a price counts is not known, so no window is inferred from it.
    """
    types = {"line_item_usage_type": "USW2-BoxUsage:p6e-gb200.36xlarge"}
    bill = [{**fee("4800"), "line_item_usage_type": "USW2-CapacityBlockFee:u-p6e-gb200x72"}]
    bill += [{**used(number), **types} for number in (0, 1)]
    assert ask(RUN, "fct_ledger", bill) == [(2400,)]


def test_a_run_may_name_the_block_its_node_is_of() -> None:
    bill = [fee("40"), fee("400", OTHER), used(0)]
    runs = tracker([Stay(0, "i-0d", None, 0, HOUR_MS)])
    runs["tracker_resource"][0]["reservation_id"] = OTHER
    windows = window(4, 1), window(4, 1, "cr-0e1f")
    # 400 over four hours; the two blocks of the account alone would not show whose the hour is.
    assert ask(RUN, "fct_ledger", bill, *windows, runs=runs) == [(100,)]


def test_an_hour_that_names_no_block_is_of_the_one_whose_window_has_it() -> None:
    """Blocks of 40 and 400, four hours each; the hour 0 is in the window of the first alone: 40 / 4. The hour 4 is in
    both where the first lasts half an hour longer, and in the window of the first or of a block without one: unknown.
    """
    bill = [fee("40"), fee("400", OTHER), used(0)]
    later = {**window(8, 1, "cr-0e1f"), "started_at": at(4 * HOUR_MS)}
    assert ask(RUN, "fct_ledger", bill, window(4, 1), later) == [(10,)]
    runs = tracker([Stay(0, "i-0d", None, 4 * HOUR_MS, 5 * HOUR_MS)])
    long = {**window(4, 1), "ended_at": at(9 * HOUR_MS // 2)}
    for windows in (long, later), (long,):
        assert ask(RUN, "fct_ledger", [*bill[:2], used(4)], *windows, runs=runs) == [(None,)]


def test_an_hour_that_names_no_block_is_of_none_that_was_refunded_whole() -> None:
    """Of blocks of 40 and 400 the first was cancelled: the hour is of the second, 400. With 39 back it is of either."""
    bill = [fee("40"), fee("400", OTHER), used(0)]
    assert ask(RUN, "fct_ledger", [*bill, fee("-40", charge="Refund")]) == [(400,)]
    assert ask(RUN, "fct_ledger", [*bill, fee("-39", charge="Refund")]) == [(None,)]


def test_a_fee_and_a_refund_that_name_no_block_are_of_the_only_one() -> None:
    held = {**window(4, 1), "account_id": "000033334444", "instance_type": "p5.48xlarge"}
    bill = [fee("40", ""), fee("-20", "", "Refund"), used(0)]
    # 20 of 40 left over four hours.
    assert ask(RUN, "fct_ledger", bill, held) == [(5,)]


@pytest.mark.parametrize(
    ("bill", "warned"),
    [
        ([fee("40"), fee("-40", charge="Refund")], []),
        ([fee("40"), fee("-30", charge="Refund")], ["without_any_hours_yet"]),
        ([fee("40"), fee("-40", OTHER, "Refund"), used(0)], ["refund_of_an_unknown"]),
    ],
)
def test_a_block_that_was_refunded_whole_before_it_began_is_known_and_needs_no_hours(
    bill: list[dict[str, str]], warned: list[str]
) -> None:
    """Of 30 of 40 refunded, 10 stay without hours; a refund alone has its fee in a month that is missing."""
    name = "fct_capacity_block_piece"
    checks = [
        check for check in load_contract(f"core/{name}").checks if check.name.endswith(("_yet", "capacity_block"))
    ]
    with Lab({MONTH: bill}, tracker([])) as lab:
        found = [check.name for check in checks if lab.ask(check.query.format(batch=name), name)]
    assert [part for part in warned if not any(part in check for check in found)] == []
    assert len(found) == len(warned)


def test_a_discount_on_a_fee_is_no_fee() -> None:
    """Where net columns carry data the discount is in them already; its row must not be spread a second time."""
    bill = [
        {**fee("40"), "line_item_net_unblended_cost": "36"},
        {**fee("-4", charge="EdpDiscount"), "line_item_net_unblended_cost": "-4"},
        {**fee("2", charge="Tax"), "line_item_net_unblended_cost": "2"},
        used(0),
    ]
    total = "select sum(effective_cost_usd) from fct_ledger where bucket <> 'other'"
    assert ask(total, "fct_ledger", bill, window(4, 1)) == [(36,)]


def test_the_fee_of_a_block_used_by_two_payers_counts_once() -> None:
    """Two instances for four hours, 80.00: a fee of 60.00 in one payer's file and of 20.00 in the other's, at the same
    row. The run's hour, 10.00, is half on the one bill, half on the other's, or on that of the next month.
    """
    one, other = ({"bill_payer_account_id": f"00000000000{n}", "source_file": f"part-{n}"} for n in (1, 2))
    fees = [{**fee("60"), **one, "source_row": "0"}, {**fee("20"), **other, "source_row": "0"}]
    july = [*fees, {**used(0, amount="0.5"), **one}, {**used(1, "i-0e"), **other}]
    half, name = {**used(0, amount="0.5"), **other}, "fct_ledger"
    for bill in {MONTH: [*july, half]}, {MONTH: july, "2026-08": [{**half, "source_file": "part-3"}]}:
        with Lab(bill, tracker([Stay(0, "i-0d", None, 0, HOUR_MS)]), (window(4, 2),)) as lab:
            costs = f"select sum(effective_cost_usd), sum(billed_cost_usd) from {name}"
            assert lab.ask(costs, name) == [(80, 80)]
            assert lab.ask(LINES_THAT_DO_NOT_SUM, name, "fct_charge") == []
            assert lab.ask(RUN, name) == [(10,)]
