"""Servers, endpoints, pods and provisioned models on a bill; each figure is derived in its test."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.lab import Lab

from pipelines.config.decisions import Decisions, Serving
from pipelines.config.sources import ServingSource
from pipelines.ingest.serving.records import SERVER, TRAFFIC, records
from pipelines.models.checks import failing_rows
from pipelines.models.contract import load_contract
from pipelines.models.expressions import expand_calls
from pipelines.present.render import sum_of
from pipelines.transforms.serving_query import QUERIES

MONTH, TEN = "2026-07", datetime(2026, 7, 14, 10)
HOUR = timedelta(hours=1)
ACCOUNT = "000033334444"


def line(number: int, resource: str, usage_type: str, cost: str, **more: str) -> dict[str, str]:
    """The line of an hour from 10:00 on, on demand."""
    begin = TEN + number * HOUR
    times = {"line_item_usage_start_date": str(begin), "line_item_usage_end_date": str(begin + HOUR)}
    costs = {"line_item_unblended_cost": cost, "pricing_public_on_demand_cost": cost, "pricing_currency": "USD"}
    what = {"line_item_resource_id": resource, "line_item_usage_type": usage_type, "line_item_usage_amount": "1"}
    return {**times, **costs, **what, "product_region_code": "us-west-2", **more}


def machine(number: int, resource: str = "i-0a") -> dict[str, str]:
    return line(number, resource, "USW2-BoxUsage:p5.48xlarge", "55.04", product_instance_type="p5.48xlarge")


def served(*servers: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Servers that serve 1,000,000 output tokens in each hour they are up, one after the other."""
    ups, traffic = [], []
    for one in servers:
        begin = one.get("started_at", TEN)
        ups.append({"evidence": "imds", "stopped_at": begin + HOUR, **one, "started_at": begin})
        span = {"started_at": begin, "ended_at": begin + HOUR, "model": one["model"]}
        traffic.append({"server_id": one["server_id"], "request_count": 5, "output_tokens": 1_000_000, **span})
    return recorded(ups, traffic)


def recorded(ups: list[dict[str, Any]], traffic: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The tables of these records of servers and their traffic."""
    found = records(ServingSource(name="servers", location="servers"), ups, traffic)
    return {name: frame.to_dicts() for name, frame in found.tables.items()}


def test_a_server_that_records_no_accelerators_has_all_of_its_endpoint() -> None:
    """Two instances of one endpoint at 40.00 an hour each: all 80.00 are the server's, though its type has half."""
    endpoint = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:endpoint/chat"
    bill = line(0, endpoint, "USW2-Host:ml.p5.48xlarge", "80", line_item_product_code="AmazonSageMaker")
    server = {"server_id": "a", "model": "small", "resource_id": endpoint, "instance_type": "ml.p5.48xlarge"}
    with Lab({MONTH: [{**bill, "line_item_usage_amount": "2"}]}, {}, serving=served(server)) as made:
        figures = "select effective_cost_usd, idle_cost_usd from mart_inference_cost_daily"
        assert made.ask(figures, "mart_inference_cost_daily") == [(Decimal(80), Decimal(0))]


def test_a_server_that_the_bill_has_in_part_has_no_cost_per_token() -> None:
    """Up for an hour, of which the bill has a fifth at 55.04: 11.008 is not what a million tokens cost."""
    part = machine(0) | dict.fromkeys(("line_item_unblended_cost", "pricing_public_on_demand_cost"), "11.008")
    server = {"server_id": "a", "model": "chat", "resource_id": "i-0a", "instance_type": "p5.48xlarge"}
    with Lab({MONTH: [part | {"line_item_usage_amount": "0.2"}]}, {}, serving=served(server)) as made:
        figures = (
            "select effective_cost_usd, cost_per_million_output_usd, missing_evidence from mart_inference_cost_daily"
        )
        ((cost, rate, why),) = made.ask(figures, "mart_inference_cost_daily")
        compared = "mart_serving_comparison"
        today = made.ask(f"select baseline_cost_per_million_total_usd from {compared}", compared)
    assert (cost, rate, today) == (Decimal("11.008"), None, [(None,)])
    assert why == "traffic: the time the servers were up is not all recorded or not all on the bill"


@pytest.mark.parametrize(
    ("traffic", "billed", "expected"),
    [
        ({"output_tokens": 0}, {}, (Decimal("110.08"), False, Decimal("110.08"))),
        ({"ended_at": TEN + 24.5 * HOUR}, {}, (Decimal("110.08"), False, None)),
        ({}, {"line_item_unblended_cost": "0"}, (Decimal("55.04"), True, None)),
    ],
    ids=["nothing served on a day", "half of an hour recorded", "a day of unknown cost"],
)
def test_a_month_has_a_cost_per_token_only_if_each_day_may_count(
    traffic: dict[str, Any], billed: dict[str, str], expected: tuple[Decimal, bool, Decimal | None]
) -> None:
    """An hour at 55.04 on each of two days, a million tokens on the first: 110.08 for a million if the second day
    served none; unknown if it served more than was recorded; and of unknown cost, at least 55.04, on a machine that
    the bill has at nothing."""
    up = {"server_id": "s", "model": "m", "resource_id": "i-0a", "instance_type": "p5.48xlarge", "evidence": "imds"}
    ups = [{**up, "started_at": TEN + day * HOUR, "stopped_at": TEN + (day + 1) * HOUR} for day in (0, 24)]
    one = {"server_id": "s", "model": "m", "request_count": 5, "output_tokens": 1_000_000}
    one |= {"input_tokens": 0, "cache_read_tokens": 0}
    spans = [{**one, "started_at": TEN + day * HOUR, "ended_at": TEN + (day + 1) * HOUR} for day in (0, 24)]
    serving, name = recorded(ups, [spans[0], spans[1] | traffic]), "mart_inference_cost_daily"
    page = expand_calls(sum_of("serving_by_model"), Path("page"))
    with Lab({MONTH: [machine(0), machine(24) | billed]}, {}, serving=serving) as made:
        read = f"select effective_cost_usd, is_cost_partial, cost_per_million_total_usd from ({page})"
        assert made.ask(read, name) == [expected]


def test_traffic_newer_than_the_bill_is_no_traffic_without_a_cost() -> None:
    """The bill ends at 12:00: the hour from 11:00 on another machine lacks its cost, that from 12:00 its delivery."""
    gone = {"server_id": "gone", "model": "m", "resource_id": "i-0b", "started_at": TEN + HOUR}
    ahead = {"server_id": "ahead", "model": "m", "resource_id": "i-0a", "started_at": TEN + 2 * HOUR}
    serving, hours = served(gone, ahead), "detail_serving_capacity_hourly"
    contract = load_contract(f"detail/{hours}")
    (check,) = (check for check in contract.checks if check.name == "tokens_without_cost")
    with Lab({MONTH: [machine(0), machine(1)]}, {}, serving=serving) as made:
        warned = made.ask(failing_rows(check, hours), hours, *contract.reads)
    assert warned == [("gone", TEN + HOUR, 1_000_000)]


def test_a_server_on_two_machines_in_an_hour_has_a_cost_per_token() -> None:
    """Half an hour on each of two machines at 55.04, each billed for it: 55.04 for 2 million tokens."""
    half = {
        "line_item_usage_amount": "0.5",
        "line_item_unblended_cost": "27.52",
        "pricing_public_on_demand_cost": "27.52",
    }
    up = {"server_id": "s", "model": "m", "instance_type": "p5.48xlarge", "evidence": "imds"}
    ups = [
        {**up, "resource_id": "i-0a", "started_at": TEN, "stopped_at": TEN + HOUR / 2},
        {**up, "resource_id": "i-0b", "started_at": TEN + HOUR / 2, "stopped_at": TEN + HOUR},
    ]
    traffic = [{"server_id": "s", "model": "m", "output_tokens": 2_000_000, "request_count": 5}]
    serving = recorded(
        ups,
        [traffic[0] | {"started_at": TEN, "ended_at": TEN + HOUR}],
    )
    name = "mart_inference_cost_daily"
    bill = [machine(0) | half, machine(0, "i-0b") | half, machine(1, "i-0b")]
    with Lab({MONTH: bill}, {}, serving=serving) as made:
        read = f"select sum(busy_cost_usd), sum(output_tokens), max(cost_per_million_output_usd) is null from {name}"
        assert made.ask(read, name) == [(Decimal("55.04"), 2_000_000, False)]


@pytest.mark.parametrize("kind", ["dedicated host", "block"])
def test_a_machine_of_unknown_cost_has_no_cost_per_token(kind: str) -> None:
    """An hour on a dedicated host is billed at nothing, and of a block at 5,000.00 the bill has this hour alone:
    neither 0.00 nor 5,000.00 is what a million tokens cost.
    """
    if kind == "block":
        block = f"arn:aws:ec2:us-west-2:{ACCOUNT}:capacity-reservation/cr-0b"
        fee = line(-5, "", "USW2-CapacityBlockFee:p5.48xlarge", "5000", product_instance_type="p5.48xlarge")
        fee |= {"line_item_line_item_type": "Fee", "line_item_operation": "", "reservation_reservation_a_r_n": block}
        hour = {"line_item_operation": "RunInstances:CB", "capacity_reservation_capacity_reservation_arn": block}
        del fee["pricing_public_on_demand_cost"]
        bill = [fee, machine(0) | hour | {"line_item_unblended_cost": "0"}]
    else:
        free = {"line_item_unblended_cost": "0", "pricing_public_on_demand_cost": "0"}
        host = line(0, "h-0a", "USW2-HostUsage:p5", "60.50")
        bill = [machine(0) | free | {"line_item_usage_type": "USW2-HostBoxUsage:p5.48xlarge"}, host]
    name, compared = "mart_inference_cost_daily", "mart_serving_comparison"
    read = "select effective_cost_usd, idle_cost_usd, cost_per_million_output_usd, list_cost_per_million_output_usd, "
    read += f"billed_cost_per_million_output_usd, missing_evidence from {name}"
    serving, hours = served({"server_id": "s", "model": "m", "resource_id": "i-0a"}), "detail_serving_capacity_hourly"
    contract = load_contract(f"detail/{hours}")
    (check,) = (check for check in contract.checks if check.name == "server_whose_machines_cost_nothing")
    with Lab({MONTH: bill}, {}, serving=serving) as made:
        ((*costs, lacking),) = made.ask(read, name)
        month = made.ask(f"select baseline_cost_per_month_usd from {compared}", compared)
        warned = made.ask(failing_rows(check, hours), hours, *contract.reads)
    # The check of blocks warns of the other.
    assert warned == ([("s", "i-0a", 1)] if kind == "dedicated host" else [])
    assert (costs, month) == ([None] * 5, [(None,)])
    assert (
        lacking
        == "cost: the bill does not show what a commitment, a Capacity Block or a dedicated host costs for this use"
    )


def test_traffic_from_before_a_start_takes_no_hour_from_its_server() -> None:
    """s starts at 10:30, when t stops, and records a million tokens from 10:00 on and another from 10:30: each half
    hour of 55.04 is 27.52 for a million. The first million of s has no cost.
    """
    up = {"resource_id": "i-0a", "evidence": "imds"}
    ups = [
        {**up, "server_id": "t", "model": "other", "started_at": TEN, "stopped_at": TEN + HOUR / 2},
        {**up, "server_id": "s", "model": "m", "started_at": TEN + HOUR / 2, "stopped_at": TEN + HOUR},
    ]
    traffic = [
        {"server_id": server, "model": "m", "output_tokens": 1_000_000, "request_count": 5}
        | {"started_at": TEN + begin * HOUR, "ended_at": TEN + (begin + 0.5) * HOUR}
        for server, begin in (("t", 0), ("s", 0), ("s", 0.5))
    ]
    serving = recorded(ups, traffic)
    name = "detail_serving_capacity_hourly"
    with Lab({MONTH: [machine(0)]}, {}, serving=serving) as made:
        read = f"select server_id, effective_cost_usd, output_tokens from {name} order by 1"
        assert made.ask(read, name) == [("s", Decimal("27.52"), 1_000_000), ("t", Decimal("27.52"), 1_000_000)]


def test_a_restart_within_an_hour_keeps_the_rest_of_it() -> None:
    """s starts at 10:00 and, without a stop, again at 10:30, with traffic throughout: all 55.04 are its own."""
    up = {"server_id": "s", "model": "m", "resource_id": "i-0a", "evidence": "imds"}
    ups = [{**up, "started_at": TEN}, {**up, "started_at": TEN + HOUR / 2, "stopped_at": TEN + HOUR}]
    traffic = [
        {"server_id": "s", "model": "m", "output_tokens": 1_000_000, "request_count": 5}
        | {"started_at": begin, "ended_at": begin + HOUR / 2}
        for begin in (TEN, TEN + HOUR / 2)
    ]
    serving = recorded(ups, traffic)
    name = "detail_serving_capacity_hourly"
    with Lab({MONTH: [machine(0)]}, {}, serving=serving) as made:
        read = f"select effective_cost_usd, idle_cost_usd, output_tokens from {name}"
        assert made.ask(read, name) == [(Decimal("55.04"), 0, 2_000_000)]


def test_inference_components_share_their_endpoint_by_accelerators() -> None:
    """An endpoint of 8 GPUs at 80.00: 2 are a's (20), 4 are b's (40), and the idle 20 is theirs by 1 to 2: 6.67 and
    13.33. The bill has the endpoint's ARN alone. What each serves is of a part of the machine."""
    endpoint = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:endpoint/chat"
    bill = line(0, endpoint, "USW2-Host:ml.p5.48xlarge", "80", line_item_product_code="AmazonSageMaker")
    component = {"resource_id": endpoint, "instance_type": "ml.p5.48xlarge"}
    serving = served(
        {"server_id": "a", "model": "small", "accelerators_used": 2, **component},
        {"server_id": "b", "model": "large", "accelerators_used": 4, **component},
    )
    name = "mart_inference_cost_daily"
    read = f"select model, platform, round(effective_cost_usd, 4), round(idle_cost_usd, 4) from {name} order by 1"
    with Lab({MONTH: [bill]}, {}, serving=serving) as made:
        assert made.ask(read, name) == [
            ("large", "sagemaker", Decimal("53.3333"), Decimal("13.3333")),
            ("small", "sagemaker", Decimal("26.6667"), Decimal("6.6667")),
        ]
        tables = ("detail_serving_capacity_hourly", "stg_serving__traffic", "ref_instance_type")
        assert made.ask(f"select distinct has_part from ({QUERIES[tables[0]]})", *tables) == [(True,)]


def test_a_pod_is_on_the_machine_that_its_split_rows_name() -> None:
    """The row shape of facts aws-billing 4.4: the pod held 4 of 8 GPUs for the hour: 4/8 of 55.04 are 27.52. The
    machine counts once."""
    pod = f"arn:aws:eks:us-west-2:{ACCOUNT}:pod/c/serve/chat-1/aaaa"
    split = {
        "line_item_operation": "EKSPod-EC2",
        "split_line_item_parent_resource_id": "i-0a",
        "split_line_item_split_usage": "4",
        "split_line_item_split_cost": "27.52",
    }
    bill = [machine(0), line(0, pod, "USW2-EKS-EC2-Accelerator-Hours", "0", **split)]
    serving = served({"server_id": "s", "model": "m", "resource_id": pod})
    with Lab({MONTH: bill}, {}, serving=serving) as made:
        own = "select resource_id, sum(effective_cost_usd) from fct_ledger where server_id = 's' group by 1"
        assert made.ask(own, "fct_ledger") == [("i-0a", Decimal("27.52"))]
        whole = "select sum(effective_cost_usd) from fct_ledger"
        assert made.ask(whole, "fct_ledger") == [(Decimal("55.04"),)]


def test_a_server_that_changes_its_model_costs_each_its_own_hours() -> None:
    """m from 10:00 and m-2 from 11:00 of one server: 55.04 and a million tokens each."""
    up = {"server_id": "s", "resource_id": "i-0a", "instance_type": "p5.48xlarge"}
    serving = served({**up, "model": "m"}, {**up, "model": "m-2", "started_at": TEN + HOUR})
    name = "mart_inference_cost_daily"
    with Lab({MONTH: [machine(0), machine(1)]}, {}, serving=serving) as made:
        rows = made.ask(f"select model, effective_cost_usd, output_tokens from {name} order by 1", name)
    assert rows == [("m", Decimal("55.04"), 1_000_000), ("m-2", Decimal("55.04"), 1_000_000)]


def test_a_server_whose_traffic_is_not_all_recorded_has_no_cost_per_token() -> None:
    """Up for 2 hours at 55.04 with the tokens of one: 110.08 for a million and an unknown number of tokens."""
    up = {"server_id": "s", "model": "m", "resource_id": "i-0a", "max_tokens_per_second": 1000.0}
    serving = served({**up, "stopped_at": TEN + 2 * HOUR})
    name = "mart_inference_cost_daily"
    read = f"select effective_cost_usd, output_tokens, cost_per_million_output_usd, utilization_ratio from {name}"
    with Lab({MONTH: [machine(0), machine(1)]}, {}, serving=serving) as made:
        assert made.ask(read, name) == [(Decimal("110.08"), 1_000_000, None, None)]


@pytest.mark.parametrize("where", [{"product_region_code": ""}, {}], ids=["without a region", "of the next month"])
def test_traffic_counts_once_in_an_hour_of_several_rows(where: dict[str, str]) -> None:
    """55.04 for the machine and 1.00 of bytes sent on a line of another region or month: 56.04 for a million tokens, of
    the 3.6 million that 1000 a second are."""
    sent = line(0, "i-0a", "USW2-DataTransfer-Out-Bytes", "1", **where)
    bills = {MONTH: [machine(0), sent]} if where else {MONTH: [machine(0)], "2026-08": [sent]}
    serving = served({"server_id": "s", "model": "m", "resource_id": "i-0a", "max_tokens_per_second": 1000.0})
    name = "mart_inference_cost_daily"
    read = "select platform, sum(effective_cost_usd), sum(output_tokens), sum(capacity_tokens), count(*), "
    read += f"max(utilization_ratio) from {name} group by platform"
    with Lab(bills, {}, serving=serving) as made:
        of_machine = ("gpu", Decimal("56.04"), 1_000_000, 3_600_000, 2, Decimal("0.277778"))
        assert made.ask(read, name) == [of_machine]


@pytest.mark.parametrize(
    ("up", "speed", "used"), [(HOUR / 2, 1000, 1), (HOUR, None, None)], ids=["all recorded", "half recorded"]
)
def test_a_throughput_is_of_the_time_up_and_of_all_its_tokens(
    up: timedelta, speed: int | None, used: int | None
) -> None:
    """1.8 million tokens in half an hour at their target: 1000 a second, which is the capacity, used in full. Where the
    server is up for a whole hour, the tokens of its other half are unknown, and so are all rates."""
    server = {"server_id": "s", "model": "m", "resource_id": "i-0a", "evidence": "imds"}
    traffic = {"server_id": "s", "model": "m", "output_tokens": 1_800_000, "request_count": 5, "ttft_p90_seconds": 1.0}
    found = records(
        ServingSource(name="servers", location="servers", ttft_target_seconds=2.0),
        [{**server, "started_at": TEN, "stopped_at": TEN + up}],
        [{**traffic, "started_at": TEN, "ended_at": TEN + HOUR / 2}],
    )
    serving = {name: frame.to_dicts() for name, frame in found.tables.items()}
    name = "detail_serving_capacity_hourly"
    read = f"select tokens_per_second, capacity_tokens_per_second, utilization_ratio from {name}"
    with Lab({MONTH: [machine(0)]}, {}, serving=serving) as made:
        assert made.ask(read, name) == [(speed, speed, used)]


def test_a_capacity_is_that_of_a_latency_target() -> None:
    """Facts serving 4: 1000 a second at a first token within 12 seconds are none of a server that has 2 of them, which
    meets its target at 100 a second."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for name, target, tokens in (("lax", 12.0, 3_600_000), ("strict", 2.0, 360_000)):
        server = {"server_id": name, "model": "m", "resource_id": f"i-{name}", "evidence": "imds"}
        traffic = {
            "server_id": name,
            "model": "m",
            "output_tokens": tokens,
            "request_count": 5,
            "ttft_p90_seconds": 1.0,
        }
        source = ServingSource(name=name, location=name, ttft_target_seconds=target)
        times = {"started_at": TEN, "ended_at": TEN + HOUR}
        found = records(source, [server | {"started_at": TEN, "stopped_at": TEN + HOUR}], [traffic | times])
        for table, frame in found.tables.items():
            tables.setdefault(table, []).extend(frame.to_dicts())
    name = "detail_serving_capacity_hourly"
    with Lab({MONTH: [machine(0, "i-lax"), machine(0, "i-strict")]}, {}, serving=tables) as made:
        read = f"select server_id, capacity_tokens_per_second from {name} order by all"
        assert made.ask(read, name) == [("lax", 1000), ("strict", 100)]


@pytest.mark.parametrize(
    ("region", "last_call", "idle"),
    [("us-west-2", 3, Decimal("49.00")), ("us-west-2", 2, None), ("us-west-2", 1000, None), ("eu-west-1", 3, None)],
    ids=["a log of the region", "a log that ends before", "a clock weeks ahead", "a log of another region"],
)
def test_hours_of_provisioned_throughput_without_a_call_are_idle(
    region: str, last_call: int, idle: Decimal | None
) -> None:
    """4 hours at 24.50 from 10:00 (facts serving V6); the provisioned model is called in the first and the third, and
    another model ends the log in the fourth. So hours 2 and 4 are idle: 49.00. An hour after the log is unknown.

    Two calls of 3,000,000 input and 1,000,000 output tokens: 98.00 buys 8 million tokens, 12.25 each.
    """
    arn = f"arn:aws:bedrock:us-west-2:{ACCOUNT}:provisioned-model/p1"
    unit = {"line_item_product_code": "AmazonBedrock", "line_item_operation": "", "pricing_unit": "hour"}
    use = "USW2-Llama2-70B-ProvisionedThroughput-NoCommit-ModelUnits"
    calls = [
        {"model": model, "resource_id": resource, "account_id": ACCOUNT, "region_id": region, "request_count": 1}
        | {"caller": "role/chat", "input_tokens": 3_000_000, "output_tokens": 1_000_000}
        | {"started_at": TEN + number * HOUR, "ended_at": TEN + (number + 1) * HOUR, "is_quiet": False}
        for number, model, resource in ((0, "llama", "p1"), (2, "llama", "p1"), (last_call, "nova", None))
    ]
    name = "mart_inference_cost_daily"
    read = (
        "select effective_cost_usd, idle_cost_usd, missing_evidence is null, cost_per_million_total_usd, "
        f"token_evidence from {name} where billed_by = 'capacity'"
    )
    bill = [line(number, arn, use, "24.50", **unit) for number in range(4)]
    with Lab({MONTH: bill}, {}, serving={TRAFFIC: calls, SERVER: []}) as made:
        per_million, evidence = (None, "none") if idle is None else (Decimal("12.25"), "log")
        assert made.ask(read, name) == [(Decimal("98.00"), idle, idle is not None, per_million, evidence)]


@pytest.mark.parametrize(("account", "resource"), [(ACCOUNT, "p1"), ("999900009999", None)])
def test_calls_of_other_tokens_do_not_show_the_busiest_hour(account: str, resource: str | None) -> None:
    """100 million tokens on demand in an hour, and a log of as many, all day long: of Provisioned Throughput, or of an
    account that is not on the bill.
    """
    unit = f"arn:aws:bedrock:us-west-2:{ACCOUNT}:provisioned-model/p1"
    paid = {"line_item_product_code": "AmazonBedrock", "line_item_operation": ""}
    on_demand = line(0, "", "USW2-Qwen3-32B-input-tokens", "100", pricing_unit="1K tokens", **paid)
    use = "USW2-Qwen3-32B-ProvisionedThroughput-NoCommit-ModelUnits"
    bill = [on_demand | {"line_item_usage_amount": "100000"}, line(0, unit, use, "24.50", pricing_unit="hour", **paid)]
    call = {"model": "Qwen3 32B", "resource_id": resource, "account_id": account, "region_id": "us-west-2"}
    call |= {"request_count": 1, "input_tokens": 5_000_000, "output_tokens": 0, "is_quiet": False}
    hours = (TEN + number * HOUR for number in range(-10, 14))
    calls = [call | {"started_at": begin, "ended_at": begin + HOUR} for begin in hours]
    other = Serving(
        model="Qwen3 32B",
        usd_per_hour=Decimal(1),
        tokens_per_second=Decimal(700),
        output_ratio=0.01,
        source="a benchmark",
    )
    name = "mart_serving_comparison"
    read = f"select missing_evidence from {name} where baseline_tier is null"
    with Lab({MONTH: bill}, {}, serving={TRAFFIC: calls, SERVER: []}, decisions=Decisions(serving=(other,))) as made:
        ((lacking,), *_) = made.ask(f"{read} and candidate_source is not null", name)
    assert "the busiest hour is not known" in lacking


@pytest.mark.parametrize(("service", "is_lacking"), [("AmazonBedrock", True), ("AmazonEC2", False)])
def test_a_discount_of_all_of_bedrock_on_a_line_of_its_own_is_named(service: str, is_lacking: bool) -> None:
    """Tokens for 100.00 and a discount of 30.00 on the same service, or on another one."""
    paid = {"line_item_product_code": "AmazonBedrock", "line_item_operation": "", "pricing_unit": "1K tokens"}
    tokens = line(0, "", "USW2-Qwen3-32B-input-tokens", "100", **paid) | {"line_item_usage_amount": "100000"}
    off = {"line_item_line_item_type": "PrivateRateDiscount", "line_item_product_code": service}
    bill, name = [tokens, line(0, "", "", "-30", pricing_public_on_demand_cost="0") | off], "mart_serving_comparison"
    other = Serving(
        model="Qwen3 32B", candidate_model="x", input_usd=Decimal(1), output_usd=Decimal(1), source="a list"
    )
    with Lab({MONTH: bill}, {}, serving={TRAFFIC: [], SERVER: []}, decisions=Decisions(serving=(other,))) as made:
        ((lacking,),) = made.ask(f"select missing_evidence from {name}", name)
    assert ("today's cost lacks discounts of USD 30.00" in lacking) is is_lacking


def test_input_tokens_that_are_not_recorded_are_unknown_and_not_none() -> None:
    """2 hours at 55.04, each with a million output tokens, 9 million input tokens in one of them and an unknown number
    in the other: 55.04 per million output tokens, nothing per million of all, and no traffic that another way prices.
    """
    up = {"server_id": "s", "model": "m", "resource_id": "i-0a", "evidence": "imds"}
    traffic = {"server_id": "s", "model": "m", "output_tokens": 1_000_000, "cache_read_tokens": 0, "request_count": 5}
    serving = recorded(
        [{**up, "started_at": TEN, "stopped_at": TEN + 2 * HOUR}],
        [
            traffic | {"started_at": TEN, "ended_at": TEN + HOUR, "input_tokens": 9_000_000},
            traffic | {"started_at": TEN + HOUR, "ended_at": TEN + 2 * HOUR},
        ],
    )
    name, compared = "mart_inference_cost_daily", "mart_serving_comparison"
    read = "select cost_per_million_output_usd, cost_per_million_total_usd, input_tokens, missing_evidence "
    other = Serving(model="m", candidate_model="x", input_usd=Decimal(1), output_usd=Decimal(1), source="a price list")
    with Lab({MONTH: [machine(0), machine(1)]}, {}, serving=serving, decisions=Decisions(serving=(other,))) as made:
        lacking = "traffic: the input tokens are not all recorded"
        assert made.ask(f"{read} from {name}", name) == [(Decimal("55.04"), None, None, lacking)]
        read = "select tokens_per_month, candidate_cost_per_month_usd, verdict_reason"
        ((*figures, reason),) = made.ask(f"{read} from {compared}", compared)
    assert figures == [None, None] and "the tokens of no day are completely known" in reason


@pytest.mark.parametrize(
    ("kind", "machine_type", "service", "is_lacking"),
    [
        ("PrivateRateDiscount", "", "AmazonEC2", True),
        ("EdpDiscount", "p5.48xlarge", "AmazonEC2", True),
        # All of a service, or another one.
        ("EdpDiscount", "", "AmazonEC2", False),
        ("PrivateRateDiscount", "", "AmazonS3", False),
    ],
)
def test_a_discount_of_servers_on_a_line_of_its_own_is_named(
    kind: str, machine_type: str, service: str, is_lacking: bool
) -> None:
    """An hour at 55.04 and a discount of 10.00: which hours it is of no line shows."""
    of_machine = {"product_instance_type": machine_type, "line_item_usage_type": f"USW2-BoxUsage:{machine_type}"}
    off = line(0, "", "", "-10") | {"line_item_line_item_type": kind, "line_item_product_code": service}
    off |= {"pricing_public_on_demand_cost": "0", **(of_machine if machine_type else {})}
    other = Serving(model="m", candidate_model="x", input_usd=Decimal(1), output_usd=Decimal(1), source="a price list")
    serving, name = served({"server_id": "s", "model": "m", "resource_id": "i-0a"}), "mart_serving_comparison"
    with Lab({MONTH: [machine(0), off]}, {}, serving=serving, decisions=Decisions(serving=(other,))) as made:
        ((lacking,),) = made.ask(f"select missing_evidence from {name}", name)
    assert ("today's cost lacks discounts of USD 10.00" in lacking) is is_lacking


def test_hours_of_an_endpoint_that_a_training_plan_paid_are_its_servers() -> None:
    """One ml.p5.48xlarge from 10:00 to 13:00 for 300.00 upfront, 100.00 an hour. How AWS bills the hours of an endpoint
    under a plan is unverified (facts 3.5, standards-2026 4): assumed is a `Host:` line at nothing. The server is up in
    the first two hours; in the third only the endpoint is."""
    endpoint = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:endpoint/chat"
    plan = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-plan/serve-plan"
    sagemaker = {"line_item_product_code": "AmazonSageMaker", "line_item_operation": "-"}
    host = "USW2-Host:ml.p5.48xlarge"
    fee = line(-30, "-", "USW2-ReservedCluster:ml.p5.48xlarge", "300", **sagemaker) | {
        "line_item_line_item_type": "Fee",
        "line_item_usage_amount": "3",
        "reservation_reservation_a_r_n": plan,
        "bill_bill_type": "Purchase",
    }
    del fee["pricing_public_on_demand_cost"]
    bill = [fee, *(line(number, endpoint, host, "0", **sagemaker) for number in range(3))]
    up = {"server_id": "s", "model": "m", "resource_id": endpoint, "instance_type": "ml.p5.48xlarge"}
    serving = served(up, {**up, "started_at": TEN + HOUR})
    name = "mart_inference_cost_daily"
    read = f"select platform, effective_cost_usd, idle_cost_usd, output_tokens from {name}"
    window = {"reservation_id": plan, "part_no": 1, "reservation_kind": "training_plan", "instance_count": 1}
    window |= {"started_at": TEN, "ended_at": TEN + 3 * HOUR}
    with Lab({MONTH: bill}, {}, [window], serving=serving) as made:
        assert made.ask(read, name) == [("sagemaker", Decimal("300"), Decimal("100"), 2_000_000)]


def test_an_hour_with_a_part_of_unknown_cost_has_none() -> None:
    """Use under a reservation whose cost the bill leaves out, and 1.00 of bytes sent: the sum is unknown, not 1.00."""
    covered = machine(0) | {
        "line_item_line_item_type": "DiscountedUsage",
        "line_item_unblended_cost": "0",
        "reservation_reservation_a_r_n": f"arn:aws:ec2:us-west-2:{ACCOUNT}:reserved-instances/ri-1",
    }
    sent = line(0, "i-0a", "USW2-DataTransfer-Out-Bytes", "1")
    name, unknown = (
        "mart_inference_cost_daily",
        "cost: the bill does not show what a commitment, a Capacity Block or a ",
    )
    read = f"select billed_cost_usd, effective_cost_usd, cost_per_million_output_usd, missing_evidence from {name}"
    serving = served({"server_id": "s", "model": "m", "resource_id": "i-0a"})
    # So is an hour of a block whose fee no delivered bill has.
    block = machine(0) | {"line_item_operation": "RunInstances:CB", "line_item_unblended_cost": "0"}
    for used in (covered, block):
        with Lab({MONTH: [used, sent]}, {}, serving=serving) as made:
            assert made.ask(read, name) == [(1, None, None, f"{unknown}dedicated host costs for this use")]
