"""The demo's story: what its runs reported and what its bill shows of the same machines and hours.

List prices are the On-Demand prices of July 2026.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime

import pytest
from support.demo_bill import HOUR, at, is_instance, tag, total


def test_list_prices_of_accelerators(bill):
    listed = {
        "p5.48xlarge": {55.04},
        "p4d.24xlarge": {21.95764},  # us-west-2; us-east-1 differs in the sixth decimal
        "trn1.32xlarge": {21.50},
        "g6e.12xlarge": {10.49264},
        "g5.12xlarge": {5.672},
    }
    seen = defaultdict(set)
    for line in (line for lines in bill.values() for line in lines if is_instance(line)):
        if line["line_item_unblended_cost"] and line["pricing_term"] != "Spot":
            rate = line["pricing_public_on_demand_cost"] / line["line_item_usage_amount"]
            seen[line["product_instance_type"]].add(round(rate, 5))
    assert listed.items() <= seen.items()


def test_events_are_what_the_contract_states(events, demo):
    assert all(event["event"] and event["run_id"] and at(event) for event in events)
    assert len({event["run_id"] for event in events}) == demo.run_count == 33
    ended = Counter(event["status"] for event in events if event["event"] == "run_ended")
    assert ended == {"completed": 31, "failed": 1}
    silent = {event["run_id"] for event in events} - {
        event["run_id"] for event in events if event["event"] == "resource_joined"
    }
    assert silent == {"rerank-g6e-1"}
    epochs = Counter((event["run_id"], event["epoch"]) for event in events if event["event"] == "epoch_completed")
    assert [key for key, count in epochs.items() if count > 1] == [("detector-spot-1", 3)]
    weights_only = [event["run_id"] for event in events if event.get("resumable") is False]
    assert set(weights_only) == {"detector-spot-1"}


def test_runs_fit_into_the_billed_seconds(events, billed_seconds):
    """Hour by hour, accelerator-seconds that runs claim are within what the node was billed for."""
    last = {}
    for event in events:
        last[event["run_id"]] = max(at(event), last.get(event["run_id"], at(event)))
    left = {(event["run_id"], event["resource"]): at(event) for event in events if event["event"] == "resource_left"}
    claimed: dict[tuple[str, datetime], float] = defaultdict(float)
    for event in events:
        if event["event"] != "resource_joined":
            continue
        until = left.get((event["run_id"], event["resource"]), last[event["run_id"]])
        share = event["accelerators_used"] / {"trn1.32xlarge": 16}.get(event["instance_type"], 8)
        hour = at(event).replace(minute=0, second=0)
        while hour < until:
            inside = min(until, hour + HOUR) - max(at(event), hour)
            claimed[event["resource"], hour] += inside.total_seconds() * share
            hour += HOUR
    assert len({resource for resource, _ in claimed}) == 35
    for (resource, hour), seconds in claimed.items():
        assert seconds <= billed_seconds[resource][hour] + 1e-3, (resource, hour)


def test_a_node_is_billed_by_the_second_and_without_gaps(events, billed_seconds):
    joined = {event["resource"]: event for event in events if event["event"] == "resource_joined"}
    node = joined[next(r for r, event in joined.items() if event["run_id"] == "llama8b-p5-4")]
    hours = sorted(billed_seconds[node["resource"]])
    assert hours == [hours[0] + place * HOUR for place in range(len(hours))]
    # It joined at 10:02:32 after 170 seconds of booting; the run left at 01:58:02 and the node stayed a day.
    launched_at, ended_at = datetime(2026, 7, 21, 9, 59, 42), datetime(2026, 7, 23, 1, 58, 2)
    whole = sum(billed_seconds[node["resource"]].values())
    assert whole == pytest.approx((ended_at - launched_at).total_seconds(), abs=1e-3)
    assert billed_seconds[node["resource"]][launched_at.replace(minute=0, second=0)] == pytest.approx(18, abs=1e-4)


def test_capacity_block_was_bought_in_june_and_used_in_july(bill):
    fee = [line for line in bill["2026-06"] if "CapacityBlockFee" in line["line_item_usage_type"]]
    assert [(line["line_item_line_item_type"], line["bill_bill_type"]) for line in fee] == [("Fee", "Purchase")]
    assert fee[0]["line_item_unblended_cost"] == pytest.approx(2 * 72 * 9.532)
    arn = fee[0]["reservation_reservation_a_r_n"]
    held = [line for line in bill["2026-07"] if line["capacity_reservation_capacity_reservation_arn"] == arn]
    hours = Counter()
    for line in held:
        hours[line["capacity_reservation_capacity_reservation_status"]] += line["line_item_usage_amount"]
    assert total(held, "line_item_unblended_cost") == 0
    assert {line["line_item_operation"] for line in held} == {"RunInstances:CB"}
    assert hours["Used"] + hours["Unused"] == pytest.approx(2 * 72, abs=1e-6)
    assert hours["Unused"] > 70
    first = min(held, key=lambda line: line["line_item_usage_start_date"])
    assert first["line_item_usage_start_date"] == datetime(2026, 7, 8, 11)
    assert first["line_item_usage_amount"] == 1.0  # two instances, half an hour


def test_capacity_reservation_is_used_or_idle_every_second(bill):
    hours = defaultdict(float)
    for line in bill["2026-07"]:
        if line["capacity_reservation_capacity_reservation_type"] == "ODCR":
            hours[line["capacity_reservation_capacity_reservation_status"]] += line["line_item_usage_amount"]
            if line["capacity_reservation_capacity_reservation_status"] == "Reserved":
                assert line["line_item_unblended_cost"] == 0
    assert hours["Used"] + hours["Unused"] == pytest.approx(hours["Reserved"]) == pytest.approx(102.5)


def test_machines_and_tags_show_the_story(bill, events):
    lines = [line for month in bill.values() for line in month]
    claimed = {event["resource"] for event in events if event["event"] == "resource_joined"}
    tagged = {tag(line, "run_id") for line in lines if is_instance(line)}
    unclaimed = {
        line["line_item_resource_id"] for line in lines if is_instance(line) and ":g5." in line["line_item_usage_type"]
    }
    assert "rerank-g6e-1" in tagged and len(unclaimed) == 1 and not unclaimed & claimed
    sandbox = next(line for line in lines if line["line_item_resource_id"] in unclaimed)
    assert dict(sandbox["resource_tags"]) == {"user_owner": "maria"}
    months = {month for month, found in bill.items() for line in found if tag(line, "run_id") == "base3b-p5-1"}
    assert months == {"2026-06", "2026-07"}
    spot = [line for line in lines if line["pricing_term"] == "Spot"]
    assert {line["product_instance_type"] for line in spot} == {""}
    assert total(spot, "pricing_public_on_demand_cost") == 0 < total(spot, "line_item_unblended_cost")
    # Both ways of being blank, and an account id that is no number.
    assert "" in {line["line_item_resource_id"] for line in lines}
    assert None in {line["line_item_tax_type"] for line in lines}
    assert "012345678901" in {line["line_item_usage_account_id"] for line in lines}
