"""Faults that made other people's reports wrong: what a line of the bill is taken for."""

from __future__ import annotations

import csv
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.odd_lines import JOB, ask, line
from support.random_ledgers import BLOCK, Stay

from pipelines.base import resources
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.validate import validate

HOUR_MS = 3_600_000
# Usage type, its resource, operation, product code; accelerators an hour of it has.
KINDS = {
    "on demand": ("USW2-BoxUsage:p5.48xlarge", "i-0a", "RunInstances", "AmazonEC2", 8),
    "us-east-1 has no prefix": ("BoxUsage:trn2.48xlarge", "i-0a", "RunInstances", "AmazonEC2", 16),
    "spot": ("USW2-SpotUsage:p4d.24xlarge", "i-0a", "RunInstances:SV001", "AmazonEC2", 8),
    "dedicated": ("USW2-DedicatedUsage:p4d.24xlarge", "i-0a", "RunInstances", "AmazonEC2", 8),
    "on a dedicated host": ("USW2-HostBoxUsage:g5.48xlarge", "i-0a", "RunInstances", "AmazonEC2", 8),
    "Capacity Block": ("USW2-BoxUsage:p5en.48xlarge", "i-0a", "RunInstances:CB", "AmazonEC2", 8),
    "unused reservation": ("USW2-UnusedBox:trn1.32xlarge", BLOCK, "RunInstances", "AmazonEC2", 16),
    "unused dedicated": ("USW2-UnusedDed:trn1n.32xlarge", BLOCK, "RunInstances", "AmazonEC2", 16),
    "training job": ("USW2-Train:ml.p4d.24xlarge", JOB, "", "AmazonSageMaker", 8),
    "managed spot": ("USW2-TrSpt:ml.trn1.32xlarge", JOB, "", "AmazonSageMaker", 16),
    "warm pool": ("USW2-TrainWarmPool:ml.p5.48xlarge", JOB, "", "AmazonSageMaker", 8),
    "HyperPod": ("USW2-Cluster:ml.p5.48xlarge", "arn:aws:sagemaker:x:1:cluster/c", "", "AmazonSageMaker", 8),
    "HyperPod in a plan": ("USW2-ReservedCluster:ml.trn2.48xlarge", "i-0a", "", "AmazonSageMaker", 16),
    "Studio": ("USW2-Studio:KernelGateway-ml.g5.12xlarge", "arn:aws:sagemaker:x:1:app/a", "", "AmazonSageMaker", 4),
    "endpoint": ("USW2-Host:ml.inf2.48xlarge", "arn:aws:sagemaker:x:1:endpoint/e", "", "AmazonSageMaker", 12),
    "batch transform": ("USW2-Tsform:ml.g6e.48xlarge", "arn:aws:sagemaker:x:1:t/e", "", "AmazonSageMaker", 8),
}
# What a kind of line is known by (stg_aws__cur_line_kind).
KIND_COLUMNS = [
    "bill_billing_period_start_date",
    "bill_payer_account_id",
    "bill_invoice_id",
    "bill_billing_entity",
    "bill_invoicing_entity",
    "line_item_currency_code",
    "line_item_line_item_type",
    "line_item_line_item_description",
    "line_item_product_code",
    "line_item_usage_type",
    "line_item_operation",
    "pricing_term",
    "product_instance_type",
    "product_region_code",
    "reservation_reservation_a_r_n",
    "capacity_reservation_capacity_reservation_arn",
    "capacity_reservation_capacity_reservation_status",
    "capacity_reservation_capacity_reservation_type",
]


@cache
def hours_by_cost() -> dict[Decimal, Decimal]:
    """Accelerator hours, by cost, of a bill with three quarters of an hour of each kind, each of its own machine."""
    bill = []
    for number, (usage, resource, operation, product, _) in enumerate(KINDS.values(), 1):
        cost = {"line_item_unblended_cost": str(number)}
        bill.append(line(usage, f"{resource}{number}", operation, product, amount="0.75", **cost))
    # As billed: what an hour of a Capacity Block costs is unknown without its fee.
    hours = "select billed_cost_usd, sum(accelerator_hours) from fct_ledger where billed_cost_usd > 0 group by 1"
    return dict(ask(hours, "fct_ledger", bill=bill))


@pytest.mark.parametrize("kind", KINDS)
def test_an_accelerator_line_without_hours(kind: str) -> None:
    """T9: every kind of accelerator line gives its billed instance-hours, never a day's 24."""
    cost = Decimal([*KINDS].index(kind) + 1)
    assert hours_by_cost()[cost] == Decimal("0.75") * KINDS[kind][-1]
    assert len(hours_by_cost()) == len(KINDS)


def test_a_daily_line_taken_for_24_hours() -> None:
    """T9: the hours of a daily line are those it bills; where in the day they lie is not known, so no run gets them."""
    day = {"line_item_usage_start_date": "2026-07-14 00:00:00", "line_item_usage_end_date": "2026-07-15 00:00:00"}
    bill = [line("USW2-BoxUsage:p5.48xlarge", "i-0a", "RunInstances", "AmazonEC2", amount="5", **day)]
    found = ask(
        "select bucket, sum(accelerator_hours) from fct_ledger group by 1",
        "fct_ledger",
        bill=bill,
        stays=[Stay(0, "i-0a", None, 0, HOUR_MS)],
    )
    # 5 h of 8 GPUs.
    assert found == [("unattributed", 40)]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        # The description's first word names the type, where neither the product nor the usage type does.
        (
            {"line_item_line_item_description": "p4d.24xlarge Linux/UNIX Spot Instance-hour in US West"},
            "USW2-SpotUsage",
        ),
        ({"product_instance_type": "p4d.24xlarge"}, "SpotUsage"),
        ({}, "USW2-SpotUsage:p4d.24xlarge"),
    ],
)
def test_a_spot_line_without_product_attributes(more: dict[str, str], kind: str) -> None:
    """T9: Spot rows carry hardly any attributes, and a public price of 0 is none."""
    bill = [
        line(
            kind,
            "i-0a",
            "RunInstances:SV002",
            "AmazonEC2",
            pricing_term="Spot",
            pricing_public_on_demand_cost="0",
            **more,
        )
    ]
    found = ask(
        "select instance_type, market, accelerator_count, list_cost_usd, region_id from stg_aws__line_item",
        "stg_aws__line_item",
        bill=bill,
    )
    # No prefix is us-east-1 (facts 4.1).
    assert found == [("p4d.24xlarge", "spot", 8, None, "us-west-2" if kind.startswith("USW2") else "us-east-1")]


def test_a_dedicated_host_next_to_its_instances() -> None:
    """T9: the host costs, the instances on it have the hours; neither is counted twice."""
    bill = [
        line("USW2-HostUsage:g5", "h-0a", "RunInstances", "AmazonEC2"),
        line("USW2-HostBoxUsage:g5.48xlarge", "i-0a", "RunInstances", "AmazonEC2", line_item_unblended_cost="0"),
    ]
    found = ask(
        "select bucket, sum(effective_cost_usd), sum(accelerator_hours) from fct_ledger group by 1 order by 1",
        "fct_ledger",
        bill=bill,
        stays=[Stay(0, "i-0a", None, 0, HOUR_MS)],
    )
    assert found == [("run", 0, 8), ("unattributed", 10, 0)]


@pytest.mark.parametrize("name", [m.name for m in load_catalog().layer("reference")])
def test_a_lookup_with_a_row_twice(tmp_path: Path, name: str) -> None:
    """T17: a reviewed list with one row twice is refused before any line can fan out over it."""
    import polars as pl

    model, contract = load_catalog()[name], load_contract(f"reference/{name}")
    rows = pl.read_csv(model.path, infer_schema=False)
    twice = pl.concat([rows, rows.head(1)])
    read = {
        "BIGINT": lambda text: text.cast(pl.Int64),
        "BOOLEAN": lambda text: text == "true",
        "DATE": lambda text: text.str.to_date(),
        "DECIMAL(10,2)": lambda text: text.cast(pl.Decimal(10, 2)),
        "DECIMAL(10,6)": lambda text: text.cast(pl.Decimal(10, 6)),
        "DECIMAL(20,10)": lambda text: text.cast(pl.Decimal(20, 10)),
        "DECIMAL(38,6)": lambda text: text.cast(pl.Decimal(38, 6)),
        "VARCHAR": lambda text: text,
    }
    typed = twice.select(read[c.type](pl.col(c.name)).alias(c.name) for c in contract.columns)
    typed.write_parquet(tmp_path / "twice.parquet")
    with DuckDBEngine() as engine:
        engine.view(name, [tmp_path / "twice.parquet"])
        checks = {check.check: check for check in validate(engine, name, contract)[0]}
    assert (checks["key_unique"].passed, checks["key_unique"].severity) == (False, "error")


def test_a_machine_family_with_two_accelerator_families() -> None:
    """T17: dedicated hosts are looked up by machine family, which must have one value."""
    with (resources.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as file:
        pairs = {(row["instance_type"].split(".")[0], row["accelerator_family"]) for row in csv.DictReader(file)}
    assert [name for name, count in Counter(family for family, _ in pairs).items() if count > 1] == []


def test_lines_apart_by_one_word_stand_once_each() -> None:
    """T17: a line finds its one kind, whichever word sets it apart or is missing: none is lost, none counts twice."""
    word = {name: "2026-06-01 00:00:00" if name.endswith("_date") else "other" for name in KIND_COLUMNS}
    plain = line("USW2-BoxUsage:p4d.24xlarge", "i-0a", "RunInstances", "AmazonEC2")
    bill: list[dict[str, Any]] = [plain, plain]
    bill += [{**plain, name: value} for name in KIND_COLUMNS for value in (word[name], None)]
    # Each line is known by what it costs.
    bill = [{**row, "line_item_unblended_cost": str(number)} for number, row in enumerate(bill)]
    found = ask("select billed_cost_usd from stg_aws__line_item", "stg_aws__line_item", bill=bill)
    assert sorted(cost for (cost,) in found) == list(range(len(bill)))


def test_a_paid_hour_next_to_one_that_its_plan_has_paid_for() -> None:
    """T22: only the amount distinguishes a training plan's hour at no price from one on demand (decision 0008)."""
    hour = line(
        "USW2-Train:ml.p4d.24xlarge", "arn:aws:sagemaker:us-west-2:1:training-job/a", "RunInstance", "AmazonSageMaker"
    )
    free = {"line_item_unblended_cost": "0", "pricing_public_on_demand_cost": "0"}
    found = ask(
        "select effective_cost_usd > 0 as is_paid, market from stg_aws__line_item",
        "stg_aws__line_item",
        bill=[{**hour, "line_item_unblended_cost": "25"}, {**hour, **free}],
    )
    assert sorted(found) == [(False, "capacity_block"), (True, "on_demand")]


NEW = {
    "USW2-BoxUsage:p9.48xlarge": "p9.48xlarge",
    "USW2-SpotUsage:trn4.48xlarge": "trn4.48xlarge",
    "USW2-BoxUsage:gr9.4xlarge": "gr9.4xlarge",
    "USW2-BoxUsage:inf3.xlarge": "inf3.xlarge",
    "USW2-BoxUsage:dl3.24xlarge": "dl3.24xlarge",
    "USW2-Train:ml.p9.48xlarge": "ml.p9.48xlarge",
    "USW2-UnusedBox:p7e-gb400.36xlarge": "p7e-gb400.36xlarge",
    "USW2-CapacityBlockFee:u-p7e-gb400x72": "u-p7e-gb400x72",
    "USW2-HostUsage:p9": "p9",
}


def test_a_new_accelerator_counted_as_none() -> None:
    """T22: an accelerator type that no list has is reported by name, also with ml. before it and as an UltraServer."""
    check = next(c for c in load_contract("core/fct_charge").checks if c.name.startswith("accelerator_type_missing"))
    found = ask(
        f"select instance_type from ({check.query.format(batch='fct_charge')})",
        "fct_charge",
        "stg_aws__charge_kind",
        bill=[line(usage, f"i-{number}", "RunInstances", "AmazonEC2") for number, usage in enumerate(NEW)],
    )
    assert check.severity == "warn"
    assert sorted(found) == sorted((named,) for named in NEW.values())


def test_an_ordinary_machine_taken_for_an_accelerator() -> None:
    """T22: high-memory machines and plain ones are no accelerators, whatever their names begin with."""
    usages = ("USW2-BoxUsage:u-6tb1.metal", "USW2-BoxUsage:m7g.16xlarge", "BoxUsage", "USW2-HostUsage:mac1")
    bill = [line(usage, f"i-{number}", "RunInstances", "AmazonEC2") for number, usage in enumerate(usages)]
    found = ask("select accelerator_family from stg_aws__line_item", "stg_aws__line_item", bill=bill)
    assert found == [("none",)] * len(usages)


def test_every_family_of_the_fact_sheet_is_listed() -> None:
    """T22: all accelerator families of facts aws-billing 5 stand in the list, with their chips."""
    with (resources.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as file:
        chips = {
            row["instance_type"]: (row["accelerator_family"], int(row["accelerator_count"]))
            for row in csv.DictReader(file)
            if row["accelerator_family"]
        }
    wanted = {
        **dict.fromkeys(("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"), ("gpu", 8)),
        **dict.fromkeys(
            ("p6-b200.48xlarge", "p6-b300.48xlarge", "g5.48xlarge", "g6.48xlarge", "g6e.48xlarge"), ("gpu", 8)
        ),
        **dict.fromkeys(("p5.4xlarge", "g5.xlarge", "g6.xlarge", "g6e.xlarge", "g7e.2xlarge"), ("gpu", 1)),
        **dict.fromkeys(("g5.12xlarge", "g6.12xlarge", "g6e.12xlarge", "p6e-gb200.36xlarge"), ("gpu", 4)),
        **{"g7e.48xlarge": ("gpu", 8), "u-p6e-gb200x36": ("gpu", 36), "u-p6e-gb200x72": ("gpu", 72)},
        **dict.fromkeys(("trn1.2xlarge", "trn2.3xlarge"), ("trainium", 1)),
        **dict.fromkeys(("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge"), ("trainium", 16)),
        **{"inf2.xlarge": ("inferentia", 1), "inf2.8xlarge": ("inferentia", 1)},
        **{"inf2.24xlarge": ("inferentia", 6), "inf2.48xlarge": ("inferentia", 12)},
    }
    assert {name: chips.get(name) for name in wanted} == wanted
