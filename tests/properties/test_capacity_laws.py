"""Laws of reserved capacity, for any window and any use of it, through the real SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import Lab
from support.ledger_law import LINES_THAT_DO_NOT_SUM
from support.random_ledgers import BLOCK, FIRST, HOUR_MS, HOURS, MONTH, Stay, at, hour, tracker

pytestmark = pytest.mark.slow

FEW = settings(max_examples=25, deadline=None, derandomize=True, database=None)
STEP = Decimal("1e-10")
FEES = st.sampled_from(["996.672", "0.0000000001", "0.1", "1", "123456.7890123457"])


@dataclass(frozen=True)
class Held:
    """A block's window (ms since FIRST), the instances it holds, its fee and what of it is given back."""

    started_ms: int
    ended_ms: int
    instance_count: int | None
    fee: str
    refund: str | None


@st.composite
def any_block(draw: st.DrawFn) -> Held:
    started = draw(st.integers(-3 * HOUR_MS, HOURS * HOUR_MS))
    fee = draw(FEES)
    return Held(
        started,
        started + draw(st.integers(1, 40 * HOUR_MS)),
        draw(st.none() | st.integers(1, 3)),
        fee,
        draw(st.none() | st.just(fee) | st.just(str(Decimal(fee) / 2))),
    )


# Hour, instance, part of the hour: within the window and beyond it, on more instances than it has.
uses = st.lists(
    st.tuples(
        st.integers(0, HOURS - 1),
        st.sampled_from(["i-0a", "i-0b", "i-0c"]),
        st.sampled_from(["1", "0.5", "0.3333333333", "0.0002777778"]),
    ),
    max_size=10,
    unique_by=lambda use: use[:2],
)
Use = tuple[int, str, str]


def bill(block: Held, used: Sequence[Use]) -> list[dict[str, str]]:
    fee = {
        **hour(0),
        "line_item_usage_type": "USW2-CapacityBlockFee:p5.48xlarge",
        "reservation_reservation_a_r_n": BLOCK,
    }
    lines = [{**fee, "line_item_line_item_type": "Fee", "line_item_unblended_cost": block.fee}]
    if block.refund:
        lines.append({**fee, "line_item_line_item_type": "Refund", "line_item_unblended_cost": f"-{block.refund}"})
    for number, machine, amount in used:
        usage = {"line_item_usage_type": "USW2-BoxUsage:p5.48xlarge", "line_item_operation": "RunInstances:CB"}
        lines.append({**hour(number), **usage, "line_item_resource_id": machine, "line_item_usage_amount": amount,
                      "line_item_unblended_cost": "0"})  # fmt: skip
    return lines


def reservation(block: Held) -> dict[str, Any]:
    window = {
        "started_at": at(block.started_ms),
        "ended_at": at(block.ended_ms),
        "instance_count": block.instance_count,
    }
    return {"reservation_id": "cr-0b10c5", "part_no": 1, "reservation_kind": "capacity_block", **window}


def lab(block: Held, used: Sequence[Use], is_known: bool = True) -> Lab:
    stays = [Stay(0, "i-0a", 5, 0, 2 * HOUR_MS)]
    held = [reservation(block)] if is_known else []
    return Lab({MONTH: bill(block, used)}, tracker(stays), held)


@FEW
@given(any_block(), uses, st.booleans())
def test_the_pieces_of_a_fee_are_the_fee_and_none_is_negative(block: Held, used: list[Use], is_known: bool) -> None:
    with lab(block, used, is_known) as made:
        pieces = ("fct_charge", "fct_ledger")
        assert made.ask(LINES_THAT_DO_NOT_SUM, *pieces) == []
        wrong = "(charge_category = 'Refund') = (effective_cost_usd > 0) and effective_cost_usd <> 0"
        assert made.ask(f"select * from fct_capacity_block_piece where {wrong}", "fct_capacity_block_piece") == []
        wrong = wrong.replace("effective_cost_usd", "billed_cost_usd")
        assert made.ask(f"select * from fct_capacity_block_piece where {wrong}", "fct_capacity_block_piece") == []


@FEW
@given(any_block(), uses)
def test_an_hour_costs_its_part_of_the_window_however_it_is_used(block: Held, used: list[Use]) -> None:
    with lab(block, used) as made:
        found = made.ask(
            "select hour_started_at, sum(effective_cost_usd) from fct_capacity_block_piece "
            "where charge_category <> 'Refund' group by 1",
            "fct_capacity_block_piece",
        )
    costs: dict[int, Decimal] = defaultdict(Decimal)
    for started_at, cost in found:
        costs[(started_at - FIRST) // timedelta(hours=1)] += cost
    length = block.ended_ms - block.started_ms
    for number in range(-4, HOURS + 42):
        first, last = max(block.started_ms, number * HOUR_MS), min(block.ended_ms, (number + 1) * HOUR_MS)
        wanted = Fraction(block.fee) * max(last - first, 0) / length
        # Two cuts are each rounded to a step.
        assert abs(Fraction(costs[number]) - wanted) <= Fraction(STEP) + Fraction(block.fee) / 10**14


@FEW
@given(any_block(), uses)
def test_a_whole_refund_leaves_nothing_in_any_hour(block: Held, used: list[Use]) -> None:
    given_back = Held(block.started_ms, block.ended_ms, block.instance_count, block.fee, block.fee)
    with lab(given_back, used) as made:
        left = made.ask(
            "select hour_started_at, resource_id from fct_capacity_block_piece group by 1, 2 "
            "having sum(effective_cost_usd) <> 0 or sum(billed_cost_usd) <> 0",
            "fct_capacity_block_piece",
        )
    assert left == []
