"""Shared cost in the showback: each policy defines who it falls to, and none loses or adds a cent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import Lab
from support.random_ledgers import HOUR_MS, MONTH, Stay, any_bill, any_stays, hour, machine_line, tracker

from pipelines.config.policy import Policy

pytestmark = pytest.mark.slow

FEW = settings(max_examples=8, deadline=None, derandomize=True, database=None)
MART = "mart_team_cost_monthly"
POLICIES = ("keep", "pro_rata", "owner")


def teamed(stays: list[Stay], teams: dict[str, str | None]) -> dict[str, list[dict[str, Any]]]:
    rows = tracker(stays)
    for run in rows["tracker_run"]:
        run["team"] = teams.get(run["run_id"])
    return rows


def shared_line(cost: str, **more: str) -> dict[str, str]:
    what = {"line_item_usage_type": "USW2-NatGateway-Bytes", "line_item_operation": "NatGateway"}
    return {**hour(0), **what, "line_item_unblended_cost": cost, "pricing_public_on_demand_cost": cost, **more}


# One hour. In account …4444 team nlp's run costs 30 and vision's 10; 4 of network are shared there. In …5555 are 8,
# tagged vision, and in …6666 2, of no team; no run is in either. Shared in all: 14.
BILL = [
    machine_line("i-0a", 0, "1", "30"),
    machine_line("i-0b", 0, "1", "10"),
    shared_line("4"),
    shared_line("8", line_item_usage_account_id="000033335555", tag_team="vision"),
    shared_line("2", line_item_usage_account_id="000033336666"),
]
STAYS = [Stay(0, "i-0a", None, 0, HOUR_MS), Stay(1, "i-0b", None, 0, HOUR_MS)]


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        # The tag names vision; 4 and 2 are no one's.
        ("keep", {"vision": "8", "no team": "6"}),
        # By cost of runs: 30 of 40 of those 6, and 10 of 40 next to the 8 of its tag.
        ("pro_rata", {"nlp": "4.5", "vision": "9.5"}),
        # …4444 is mostly nlp's; the tag names vision; …6666 has no run and no tag.
        ("owner", {"nlp": "4", "vision": "8", "no team": "2"}),
    ],
)
def test_each_policy_distributes_as_it_states(policy: str, parts: dict[str, str]) -> None:
    runs = teamed(STAYS, {"run-0": "nlp", "run-1": "vision"})
    with Lab({MONTH: BILL}, runs, policy=Policy.model_validate({"shared_cost": policy})) as made:
        found = made.ask(
            "select team, sum(distributed_shared_cost_usd), sum(showback_cost_usd), max(shared_cost_policy) "
            f"from {MART} group by 1 having sum(showback_cost_usd) <> 0",
            MART,
        )
        own = {"nlp": 30, "vision": 10}
        teams = {*own, *parts}
        expected = {(team, Decimal(parts.get(team, "0")), own.get(team, 0) + Decimal(parts.get(team, "0")), policy)
            for team in teams}  # fmt: skip
        assert set(found) == expected
        tagged = made.ask(f"select team, shared_cost_usd from {MART} where shared_cost_usd <> 0", MART)
        assert set(tagged) == {("vision", Decimal(8)), ("no team", Decimal(6))}


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        # The 8 that are tagged vision are vision's. Of the other 6 nothing is shared out, so nothing is unknown but
        # vision's own cost.
        ("keep", {("nlp", "0", "30", False), ("vision", "8", "8", True), ("no team", "6", "6", False)}),
        # By what cost? Both parts of the 6 are open, and they stay with no team.
        ("pro_rata", {("nlp", None, "30", True), ("vision", "8", "8", True), ("no team", "6", "6", False)}),
        # …4444 is nlp's or vision's: its 4 stay, as do the 2 of …6666.
        ("owner", {("nlp", None, "30", True), ("vision", "8", "8", True), ("no team", "6", "6", False)}),
    ],
)
def test_no_part_rests_on_an_unknown_cost(policy: str, parts: set[tuple[str, str | None, str | None, bool]]) -> None:
    """As above, but vision's hour is under a reservation whose cost the bill lacks."""
    reserved = {**BILL[1], "line_item_line_item_type": "DiscountedUsage", "line_item_unblended_cost": "0"}
    runs = teamed(STAYS, {"run-0": "nlp", "run-1": "vision"})
    chosen = Policy.model_validate({"shared_cost": policy})
    with Lab({MONTH: [BILL[0], reserved, *BILL[2:]]}, runs, policy=chosen) as made:
        part = "nullif(coalesce(sum({0}), 0), case when count({0}) < count(*) then 0 end)"
        sums = ", ".join(map(part.format, ("distributed_shared_cost_usd", "showback_cost_usd")))
        found = made.ask(
            f"select team, {sums}, bool_or(is_cost_partial) from {MART} group by 1",
            MART,
        )
    assert set(found) == {
        (team, part and Decimal(part), showback and Decimal(showback), is_partial)
        for team, part, showback, is_partial in parts
    }


@pytest.mark.parametrize("policy", POLICIES)
@FEW
@given(bill=any_bill, stays=any_stays, data=st.data())
def test_every_policy_conserves_each_month_and_currency_to_the_last_digit(
    policy: str, bill: list[dict[str, str]], stays: list[Stay], data: st.DataObject
) -> None:
    lines = [
        {**line, "line_item_currency_code": data.draw(st.sampled_from(["USD", "USD", "EUR"]))}
        | ({"tag_team": data.draw(st.sampled_from(["nlp", "vision"]))} if data.draw(st.booleans()) else {})
        for line in [*bill, shared_line("0.1000000001"), shared_line("-7.77")]
    ]
    team = {f"run-{number}": data.draw(st.sampled_from([None, "nlp", "vision"])) for number in range(3)}
    chosen = Policy.model_validate({"shared_cost": policy})
    with Lab({MONTH: lines}, teamed(stays, team), policy=chosen) as made:
        ledger = made.ask(
            "select billing_month, billing_currency, coalesce(sum(effective_cost_usd), 0), "
            "coalesce(sum(effective_cost_usd) filter (where bucket = 'shared'), 0) from fct_ledger group by 1, 2",
            "fct_ledger",
        )
        mart = made.ask(
            "select billing_month, billing_currency, coalesce(sum(showback_cost_usd), 0), "
            "coalesce(sum(distributed_shared_cost_usd), 0) "
            f"from {MART} group by 1, 2",
            MART,
        )
        assert sorted(mart) == sorted(ledger)
