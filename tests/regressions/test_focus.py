"""What others got wrong in FOCUS exports (facts aws-billing 1.4 and pitfalls 1, 15, 16, 17, 20, 21)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from support.focus_exports import focus_lines, normalized
from support.lab import Lab

from pipelines.config.terms import Terms
from pipelines.ingest.billing.columns import FOCUS

MONTH = "2026-07"
HOUR = {"ChargePeriodStart": f"{MONTH}-14 10:00:00", "ChargePeriodEnd": f"{MONTH}-14 11:00:00"}
NODE = {"ResourceId": "i-0a", "SkuMeter": "USW2-BoxUsage:p5.48xlarge", "ConsumedQuantity": "1"}
PLAN = {
    "CommitmentDiscountId": "arn:aws:savingsplans::000011112222:savingsplan/sp-1",
    "CommitmentDiscountCategory": "Spend",
    "CommitmentDiscountType": "Savings Plan",
}
COVERED = {**NODE, **PLAN, "PricingCategory": "Committed", "CommitmentDiscountStatus": "Used"}
BLOCK = "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5"


def lab(*lines: Mapping[str, str], version: str = "1.2") -> Lab:
    """The lines in staging, as a FOCUS export of the version delivers them."""
    whole = focus_lines([{**HOUR, **line} for line in lines], MONTH, version)
    return Lab({MONTH: normalized(whole)}, {}, listed=FOCUS)


def staged(what: str, *lines: Mapping[str, str], version: str = "1.2") -> list[tuple[Any, ...]]:
    with lab(*lines, version=version) as made:
        return made.ask(f"select {what} from stg_aws__line_item order by source_row", "stg_aws__line_item")


def ledger(what: str, *lines: Mapping[str, str]) -> list[tuple[Any, ...]]:
    with lab(*lines) as made:
        return made.ask(f"select {what} from fct_ledger group by all order by all", "fct_ledger")


def test_list_cost_over_a_purchase_and_the_usage_it_covers_is_not_doubled() -> None:
    """An hour bought at a list price of 55.04 and used once is 55.04 at list, not 110.08 (pitfall 21)."""
    bought = {**PLAN, "ChargeCategory": "Purchase", "BilledCost": "30", "EffectiveCost": "0", "ListCost": "55.04"}
    covered = {**COVERED, "EffectiveCost": "30", "ListCost": "55.04"}
    lines = {**bought, "ChargeFrequency": "Recurring"}, {**bought, "ChargeFrequency": "One-Time"}, covered
    what = "list_cost_usd, effective_cost_usd, billed_cost_usd"
    assert staged(what, *lines) == [
        (Decimal(0), Decimal(0), Decimal(30)),
        (Decimal(0), Decimal(0), Decimal(30)),
        (Decimal("55.04"), Decimal(30), Decimal(0)),
    ]


def test_contracted_cost_is_no_basis_of_ours() -> None:
    """ContractedCost is neither what was billed nor what was amortized; no column of ours takes it (pitfall 21)."""
    costs = {"BilledCost": "1", "EffectiveCost": "2", "ListCost": "3", "ContractedCost": "999"}
    what = "billed_cost_usd, effective_cost_usd, list_cost_usd"
    assert staged(what, {**NODE, **costs}) == [(Decimal(1), Decimal(2), Decimal(3))]


def test_a_line_does_not_cost_what_was_billed() -> None:
    """An hour billed at 1.62 whose EffectiveCost is 2.00: the one is no reason for the other."""
    with lab({**NODE, "BilledCost": "1.62", "EffectiveCost": "2.00"}) as made:
        what = "cost_rule_meaning, effective_cost_usd, billed_cost_usd"
        rows = made.ask(f"select {what} from fct_ledger_line", "fct_ledger_line")
    assert rows == [("the EffectiveCost of the line", Decimal(2), Decimal("1.62"))]


def test_an_instance_is_known_without_x_usage_type() -> None:
    """1.0 has the usage type in x_UsageType, 1.2 in SkuMeter: both are the same hour (pitfall 21)."""
    what = "usage_type, line_class, instance_type, accelerator_family, accelerator_count, usage_quantity"
    for version in ("1.0", "1.2"):
        assert staged(what, NODE, version=version) == [
            ("USW2-BoxUsage:p5.48xlarge", "instance", "p5.48xlarge", "gpu", 8, Decimal(1))
        ]


def test_an_instance_is_known_where_the_meter_is_no_usage_type() -> None:
    """That SkuMeter holds the usage type is unverified (facts 1.4): else the SKU's details or the words decide."""
    meter = {**NODE, "SkuMeter": "Instance Hours"}
    named = {**meter, "SkuInstanceType": "trn1.32xlarge"}
    words = {**meter, "ChargeDescription": "$55.04 per On Demand Linux p5.48xlarge Instance Hour"}
    # Not instance time, though it bills hours of something of the instance.
    optimized = {**named, "SkuMeter": "USW2-EBSOptimized:p5.48xlarge"}
    gigabytes = {**named, "PricingUnit": "GB"}
    what = "line_class, instance_type, accelerator_family"
    assert staged(what, named, words, optimized, gigabytes) == [
        ("instance", "trn1.32xlarge", "trainium"),
        ("instance", "p5.48xlarge", "gpu"),
        ("other", "p5.48xlarge", "none"),
        ("other", "trn1.32xlarge", "none"),
    ]


def test_the_volume_of_a_sagemaker_job_is_no_instance() -> None:
    """Its 0.07 for gigabytes stays storage, as in golden story sagemaker_jobs_hyperpod_and_a_warm_pool."""
    lines = [
        {"SkuMeter": f"USW2-Train:{kind}", "ConsumedQuantity": "1"} for kind in ("VolumeUsage.gp2", "ml.g5.xlarge")
    ]
    assert staged("line_class", *lines) == [("other",), ("instance",)]


def test_a_type_that_names_its_purpose_is_that_type() -> None:
    """AWS writes ml.p4d.24xlarge-Training as the type of a job, in the SKU's details or in the meter."""
    job = {"ResourceId": "arn:aws:sagemaker:us-west-2:000033334444:training-job/j", "ConsumedQuantity": "1"}
    job |= {"x_ServiceCode": "AmazonSageMaker", "SkuInstanceType": "ml.p4d.24xlarge-Training"}
    meters = "USW2-Train:ml.p4d.24xlarge", "USW2-Train:ml.p4d.24xlarge-Training"
    what = "line_class, instance_type, accelerator_family, accelerator_count"
    found = staged(what, *({**job, "SkuMeter": meter} for meter in meters))
    assert found == [("instance", "ml.p4d.24xlarge", "gpu", 8)] * 2


def test_a_run_finds_its_node_though_focus_writes_an_arn() -> None:
    """A run knows its node by its id; an ARN would leave every hour unattributed."""
    place = "arn:aws:ec2:us-west-2:000033334444"
    # A node of HyperPod, as stg_aws__line_item has it of a cost and usage report; a cluster is none.
    cluster = "arn:aws:sagemaker:us-west-2:000033334444:cluster/c-1"
    ids = [f"{place}:instance/i-0a", "i-0a", f"{place}:volume/vol-1", "arn:aws:s3:::bucket", BLOCK, f"{cluster}/i-0b"]
    lines = [{**NODE, "ResourceId": name} for name in [*ids, cluster]]
    found = staged("resource_id", *lines)
    assert [name for (name,) in found] == ["i-0a", "i-0a", "vol-1", "arn:aws:s3:::bucket", BLOCK, "i-0b", cluster]


def test_the_fee_of_a_capacity_block_does_not_vanish() -> None:
    """Amortized like a reservation's its effective cost would be 0, and the hours are free (pitfall 1)."""
    fee = {
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "One-Time",
        "BilledCost": "955.20",
        "EffectiveCost": "0",
        "ListCost": "955.20",
        "SkuMeter": "USW2-CapacityBlockFee:p5.48xlarge",
        "CommitmentDiscountId": BLOCK,
    }
    used = {**NODE, "x_Operation": "RunInstances:CB", "CapacityReservationId": BLOCK}
    idle = {
        **used,
        "ResourceId": BLOCK,
        "CapacityReservationStatus": "Unused",
        "SkuMeter": "USW2-UnusedBox:p5.48xlarge",
    }
    what = "line_class, effective_cost_usd, billed_cost_usd, list_cost_usd, capacity_reservation_id"
    nothing = Decimal(0)
    assert staged(what, fee, used, idle) == [
        ("block_fee", Decimal("955.20"), Decimal("955.20"), None, "cr-0b10c5"),
        ("instance", nothing, nothing, None, "cr-0b10c5"),
        ("capacity_unused", nothing, nothing, None, "cr-0b10c5"),
    ]


@pytest.mark.parametrize(("on_fee", "on_hours"), [("0", "40.05"), ("955.20", "0.25")], ids=["shape A", "shape B"])
def test_the_fee_of_a_capacity_block_counts_once(on_fee: str, on_hours: str) -> None:
    """24 hours at 39.80 and a license of 0.25 on each of two: 955.20 + 0.50, whether or not the hours carry the fee."""
    fee = {
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "One-Time",
        "BilledCost": "955.20",
        "EffectiveCost": on_fee,
        "SkuMeter": "USW2-CapacityBlockFee:p5.48xlarge",
        "CommitmentDiscountId": BLOCK,
    }
    used = {**NODE, "x_Operation": "RunInstances:0002:CB", "CapacityReservationId": BLOCK, "BilledCost": "0.25"}
    hours = [{**used, "EffectiveCost": on_hours}] * 2
    assert sum(cost for (cost,) in staged("effective_cost_usd", fee, *hours)) == Decimal("955.70")


def test_the_fee_of_a_training_plan_is_a_blocks_and_its_hours_are_paid_by_it() -> None:
    """A plan of 4800.00, as golden story training_plan_paid_upfront has it: the hours of its jobs and of its HyperPod
    nodes are free, and the fee is the cost of these. As any other fee it would leave the runs at 0. An endpoint that
    costs money is in no plan.
    """
    plan = "arn:aws:sagemaker:us-west-2:000033334444:training-plan/july-plan"
    fee = {"ChargeCategory": "Purchase", "ChargeFrequency": "One-Time", "BilledCost": "4800", "EffectiveCost": "4800"}
    fee |= {
        "SkuMeter": "USW2-ReservedCluster:ml.trn1.32xlarge",
        "CapacityReservationId": plan,
        "ConsumedQuantity": "48",
    }
    node = {"SkuMeter": "USW2-ReservedCluster:ml.trn1.32xlarge", "ResourceId": f"{plan}-cluster/i-0b"}
    job = {"SkuMeter": "USW2-Train:ml.trn1.32xlarge", "x_ServiceCode": "AmazonSageMaker", "ConsumedQuantity": "2"}
    paid = {**job, "BilledCost": "3", "EffectiveCost": "3"}
    found = staged("line_class, market, capacity_reservation_id, effective_cost_usd", fee, node, job, paid)
    assert [row[:2] for row in found[1:]] == [("instance", "capacity_block")] * 2 + [("instance", "on_demand")]
    assert (found[0][0], *found[0][2:]) == ("block_fee", plan, 4800)


@pytest.mark.parametrize("has_fee", [True, False], ids=["with its fee", "by what used it"])
def test_a_plan_is_of_one_kind(has_fee: bool) -> None:
    """A SageMaker plan of 100.00 of which a training job used 3.80: 3.8 %, not a plan used whole and one not at all.

    Account 000033334444 used it; the plan is of the account in its ARN.
    """
    plan = {**PLAN, "ServiceName": "Amazon SageMaker", "PricingCategory": "Committed"}
    used = {**plan, "EffectiveCost": "3.80", "SkuMeter": "USW2-Train:ml.p5.48xlarge"}
    used |= {"CommitmentDiscountStatus": "Used", "ConsumedQuantity": "1"}
    rest = {**plan, "EffectiveCost": "96.20", "CommitmentDiscountStatus": "Unused", "ServiceName": "Savings Plans"}
    fee = {**PLAN, "ChargeCategory": "Purchase", "ChargeFrequency": "Recurring", "BilledCost": "100"}
    fee |= {"SkuMeter": "MachineLearningSP:1yrNoUpfront", "ServiceName": "Savings Plans"}
    with lab(*([fee] if has_fee else []), used, rest) as made:
        sums = "sum(commitment_cost_usd), sum(used_cost_usd), sum(unused_cost_usd)"
        what = f"select commitment_kind, account_id, {sums} from stg_aws__commitment_fee group by all"
        found = made.ask(what, "stg_aws__commitment_fee")
    assert found == [("sagemaker_savings_plan", "000011112222", Decimal(100), Decimal("3.80"), Decimal("96.20"))]


def test_an_ec2_instance_plan_is_one_under_the_service_of_compute_plans() -> None:
    """The type names the kind; the service of its fee, ComputeSavingsPlans, does not."""
    plan = {**PLAN, "CommitmentDiscountType": "EC2 Instance Savings Plans"}
    fee = {**plan, "ChargeCategory": "Purchase", "BilledCost": "40", "x_ServiceCode": "ComputeSavingsPlans"}
    used = {**plan, "CommitmentDiscountStatus": "Used", "EffectiveCost": "40", "PricingCategory": "Committed"}
    with lab(fee, used) as made:
        found = made.ask("select commitment_kind from stg_aws__commitment_fee", "stg_aws__commitment_fee")
    assert found == [("ec2_instance_savings_plan",)]


def test_what_a_plan_without_its_fee_left_unused_is_unknown() -> None:
    """40.00 used of a plan of which the bill has neither a purchase nor an unused part: no utilization of 100 %."""
    with lab(COVERED | {"EffectiveCost": "40", "ListCost": "55.04"}) as made:
        mart = "mart_commitment_utilization_monthly"
        what = "commitment_cost_usd, used_cost_usd, unused_cost_usd, utilization_ratio, lost_savings_reason"
        found = made.ask(f"select {what} from {mart}", mart)
        assert found == [(None, Decimal(40), None, None, "unknown: no fee of it is on the bill")]
        mart = "mart_effective_savings_rate_monthly"
        found = made.ask(f"select effective_savings_rate_ratio from {mart} where savings_scope = 'classic'", mart)
        assert found == [(None,)]


def test_unused_capacity_is_not_instance_time_of_a_run() -> None:
    """An idle reservation's hour is real cost and no run's, whatever meter it stands under (pitfall 15)."""
    idle = {"ResourceId": BLOCK, "CapacityReservationStatus": "Unused", "EffectiveCost": "55.04", "ListCost": "55.04"}
    metered, plain = {**NODE, **idle, "SkuMeter": "USW2-UnusedBox:p5.48xlarge"}, {**NODE, **idle}
    counted = {**NODE, "ResourceId": BLOCK, "SkuMeter": "USW2-Reservation:p5.48xlarge"}
    what = "bucket, sum(effective_cost_usd), sum(accelerator_hours)"
    assert ledger(what, metered, plain, counted) == [
        ("capacity_unused", Decimal("110.08"), Decimal(16)),
        ("other", Decimal(0), Decimal(0)),
    ]


def test_a_name_that_ends_like_a_reservation_is_none() -> None:
    """An endpoint `ocr-chat` holds no reservation `cr-chat` of full use; a block's ARN and a bare id name theirs."""
    names = "arn:aws:sagemaker:us-west-2:000033334444:endpoint/ocr-chat", "ocr-1", BLOCK, "cr-0b10c5"
    found = staged("capacity_reservation_id", *({**NODE, "ResourceId": name} for name in names))
    assert found == [(None,), (None,), ("cr-0b10c5",), ("cr-0b10c5",)]


def test_unused_commitment_is_on_its_own_line_and_has_no_hours() -> None:
    """What a plan or a reservation left unused is Usage in FOCUS; as instance time it would be charged to runs."""
    unused = {"CommitmentDiscountStatus": "Unused", "PricingCategory": "Committed", "ListCost": "10"}
    plan = {**PLAN, **unused, "EffectiveCost": "10", "SkuMeter": "ComputeSP:1yrNoUpfront"}
    idle = {
        **NODE,
        **unused,
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": "ri-1",
        "EffectiveCost": "7",
    }
    what = "bucket, sum(effective_cost_usd), sum(list_cost_usd), sum(accelerator_hours)"
    assert ledger(what, plan, idle) == [("commitment_unused", Decimal(17), Decimal(0), Decimal(0))]


def test_what_a_sagemaker_plan_left_unused_is_nobodys_use_of_ai() -> None:
    """An endpoint of 20.00 next to 6.00 that a plan left unused: only the endpoint's needs an owner."""
    endpoint = {"x_ServiceCode": "AmazonSageMaker", "SkuMeter": "USW2-Host:ml.inf2.48xlarge", "ConsumedQuantity": "1"}
    idle = {"CommitmentDiscountStatus": "Unused", "x_ServiceCode": "MachineLearningSavingsPlans", "EffectiveCost": "6"}
    owner = "detail_serving_owner_monthly"
    with lab({**endpoint, "BilledCost": "20", "EffectiveCost": "20"}, {**PLAN, **idle}) as made:
        found = made.ask(f"select service, effective_cost_usd from {owner}", owner)
    assert found == [("AmazonSageMaker", 20)]


def test_what_a_reservation_left_unused_in_an_open_month_stops_at_its_newest_hour() -> None:
    """A reservation of 2.00 an hour, used in the first two of July's 744 hours; the third ran on demand.

    FOCUS states 742 x 2.00 as unused in one line of the month. Three hours cost 6.00, of which 2.00 are unused.
    """
    held = {**NODE, "CommitmentDiscountCategory": "Usage", "CommitmentDiscountId": "ri-1", "InvoiceId": ""}
    month = {"ChargePeriodStart": f"{MONTH}-01 00:00:00", "ChargePeriodEnd": "2026-08-01 00:00:00"}
    first = [
        {"ChargePeriodStart": f"{MONTH}-01 0{n}:00:00", "ChargePeriodEnd": f"{MONTH}-01 0{n + 1}:00:00"}
        for n in range(3)
    ]
    used = {**held, "CommitmentDiscountStatus": "Used", "EffectiveCost": "2"}
    rest = {**held, **month, "CommitmentDiscountStatus": "Unused", "ResourceId": "", "EffectiveCost": "1484"}
    on_demand = {**NODE, **first[2], "ResourceId": "i-0b", "InvoiceId": "", "EffectiveCost": "55.04"}
    with lab(used | first[0], used | first[1], rest, on_demand) as made:
        mart = "mart_commitment_utilization_monthly"
        found = made.ask(f"select commitment_cost_usd, used_cost_usd, unused_cost_usd from {mart}", mart)
        assert found == [(Decimal(6), Decimal(4), Decimal(2))]
        mart = "mart_effective_savings_rate_monthly"
        found = made.ask(f"select unused_cost_usd from {mart} where savings_scope = 'classic'", mart)
        assert found == [(Decimal(2),)]


def test_a_credit_lowers_the_invoice_and_not_the_effective_cost() -> None:
    """FOCUS takes credits off the effective cost; ours is before credits (design 3.1)."""
    credit = {"ChargeCategory": "Credit", "BilledCost": "-5", "EffectiveCost": "-5", "ListCost": "-5"}
    what = "charge_category, billed_cost_usd, effective_cost_usd, list_cost_usd"
    assert staged(what, credit) == [("Credit", Decimal(-5), Decimal(0), None)]


def test_a_correction_is_no_usage_of_this_month() -> None:
    """Money back for last month's hours names an instance; counted as usage, the hour would exist twice."""
    back = {**NODE, "ChargeClass": "Correction", "BilledCost": "-4", "EffectiveCost": "-4", "ListCost": "55.04"}
    more = {**back, "BilledCost": "4", "EffectiveCost": "4"}
    adjusted = {"ChargeCategory": "Adjustment", "BilledCost": "0.19", "EffectiveCost": "0.19"}
    what = "charge_category, line_class, effective_cost_usd, list_cost_usd"
    assert staged(what, back, more, adjusted) == [
        ("Refund", "other", Decimal(-4), None),
        ("Adjustment", "other", Decimal(4), None),
        ("Adjustment", "other", Decimal("0.19"), None),
    ]


def test_the_refund_of_a_plans_fee_costs_nothing_as_the_fee_did() -> None:
    """An upfront fee counts nothing, so 50.00 of it given back count nothing; any other correction is money."""
    back = {"ChargeCategory": "Adjustment", "ChargeClass": "Correction", "BilledCost": "-50", "EffectiveCost": "-50"}
    fee = {**back, "ChargeDescription": "Refund for one-time fee for Savings Plan ID: sp-1"}
    # Of the purchase itself a correction has no effective cost, as the purchase has none: no discount took it away.
    bought = {**back, **PLAN, "ChargeCategory": "Purchase", "EffectiveCost": "0"}
    what = "effective_cost_usd, amortized_cost_usd, billed_cost_usd"
    assert staged(what, fee, back, bought) == [(0, 0, -50), (-50, -50, -50), (0, 0, -50)]


@pytest.mark.parametrize(
    ("discounts", "before"), [('{"edp_discount": -3.0}', (None, None)), ('{"edp_discount": 0.0}', (27, "0.49"))]
)
def test_a_rate_before_discounts_is_unknown_where_costs_are_after_them(discounts: str, before: tuple) -> None:
    """An hour that lists at 55.04 under a plan costs 27.00 and leaves 1.00 unused: 28.00 after discounts.

    What it costs before the 3.00 that the line names is not on the bill; without a discount both are 1 - 28 / 55.04.
    """
    used = {**COVERED, "ListCost": "55.04", "EffectiveCost": "27", "x_Discounts": discounts}
    idle = {**PLAN, "CommitmentDiscountStatus": "Unused", "PricingCategory": "Committed", "EffectiveCost": "1"}
    mart = "mart_effective_savings_rate_monthly"
    with lab(used, idle) as made:
        found = made.ask(
            "select savings_scope, usage_cost_usd, round(effective_savings_rate_ratio, 2), lost_savings_reason "
            f"from {mart} where savings_scope in ('classic', 'all_usage_after_discounts') order by all",
            mart,
        )
    reason = "unknown: the bill shows costs after negotiated discounts alone" if before[0] is None else None
    assert found == [
        ("all_usage_after_discounts", 27, Decimal("0.49"), None),
        ("classic", before[0], before[1] and Decimal(before[1]), reason),
    ]


def test_a_plan_costs_after_discounts_where_the_bill_shows_no_other_costs() -> None:
    """A plan of 40.00, of which 30.00 were used, at 10 % off: 36.00, 27.00 and 9.00 by a FOCUS bill.

    Its utilization is that of the cost and usage report: 27 / 36 = 30 / 40.
    """
    off = {**PLAN, "x_Discounts": '{"edp_discount": -1.0}'}
    fee = {**off, "ChargeCategory": "Purchase", "ChargeFrequency": "Recurring", "BilledCost": "36"}
    idle = {**off, "CommitmentDiscountStatus": "Unused", "PricingCategory": "Committed", "EffectiveCost": "9"}
    mart = "mart_commitment_utilization_monthly"
    with lab({**COVERED, **off, "EffectiveCost": "27", "ListCost": "55.04"}, idle, fee) as made:
        figures = "commitment_cost_usd, used_cost_usd, unused_cost_usd, net_savings_usd, utilization_ratio"
        assert made.ask(f"select {figures} from {mart}", mart) == [(36, 27, 9, Decimal("19.04"), Decimal("0.75"))]


def test_another_clouds_lines_are_no_runs() -> None:
    """One FOCUS table may hold several providers; a tag on a line of another one names none of our runs."""
    ours = {**NODE, "HostProviderName": "", "tag_run_id": "r-1"}
    theirs = {"HostProviderName": "Microsoft", "ServiceProviderName": "Microsoft", "tag_run_id": "r-1"}
    # Converters write AWS in lower case too.
    lower = {**ours, "HostProviderName": "aws", "ServiceProviderName": "aws"}
    assert staged("tag_run_id", ours, theirs, lower) == [("r-1",), (None,), ("r-1",)]


def test_another_clouds_lines_are_outside_of_the_coverage_by_runs() -> None:
    """A machine of Microsoft at 100.00 has both tags and names no run of ours; a node at 10.00 has that of its run."""
    microsoft = {"HostProviderName": "Microsoft", "ServiceProviderName": "Microsoft", "ResourceId": "vm-1"}
    tags = {"tag_run_id": "r-1", "tag_team": "nlp"}
    mart = "detail_tag_coverage_monthly"
    with lab(
        {**microsoft, **tags, "EffectiveCost": "100"}, {**NODE, "tag_run_id": "r-1", "EffectiveCost": "10"}
    ) as made:
        found = made.ask(
            "select tag, sum(taggable_cost_usd), sum(tagged_cost_usd), sum(untaggable_cost_usd) "
            f"from {mart} where tag <> 'owner' group by tag order by tag",
            mart,
        )
    assert found == [("run_id", 10, 10, 100), ("team", 110, 100, 0)]


def test_another_clouds_reservation_is_no_commitment_of_ours() -> None:
    """Microsoft bills 60.00 for a reservation, of which 50.00 were used and 10.00 not: all of it is in `other`.

    Next to it an hour of ours ran on demand: 0 of 55.04 is covered, and nothing is held. 0 billed for 50.00 and 10.00
    and 60.00 for 0 are what is paid at another time: together 0.00, so that the month is 60.00 on both bases.
    """
    microsoft = {"HostProviderName": "Microsoft", "ServiceProviderName": "Microsoft", "BillingAccountId": "1234567"}
    held = {**microsoft, "CommitmentDiscountId": "reservations/2", "CommitmentDiscountCategory": "Usage"}
    bought = {**held, "ChargeCategory": "Purchase", "ChargeFrequency": "Recurring", "BilledCost": "60"}
    used = {**held, "CommitmentDiscountStatus": "Used", "ListCost": "80", "EffectiveCost": "50"}
    used["ContractApplied"] = '{"Elements": [{"ContractCommitmentId": "reservations/2"}]}'
    idle = {**held, "CommitmentDiscountStatus": "Unused", "EffectiveCost": "10"}
    ours = {**NODE, "BilledCost": "55.04", "EffectiveCost": "55.04", "ListCost": "55.04"}
    bill = "mart_invoice_reconciliation_monthly"
    reasons = "upfront_fee_usd, netted_discount_usd, commitment_timing_usd"
    with lab(bought, used, idle, ours) as made:
        for table, what, expected in (
            ("fct_ledger", "payer_account_id, bucket, sum(billed_cost_usd), sum(list_cost_usd)",
             [("000011112222", "unattributed", Decimal("55.04"), Decimal("55.04")), ("1234567", "other", 60, 80)]),
            ("mart_commitment_coverage_daily", "payer_account_id, eligible_list_cost_usd, covered_list_cost_usd",
             [("000011112222", Decimal("55.04"), 0)]),
            ("mart_commitment_utilization_monthly", "commitment_id", []),
            ("detail_commitment_reconciliation", "commitment_id", []),
            ("mart_effective_savings_rate_monthly", "payer_account_id", [("000011112222",)]),
            ("detail_charge_monthly", "provider, sum(amortized_cost_usd), sum(effective_cost_usd)",
             [("AWS", Decimal("55.04"), Decimal("55.04")), ("Microsoft", 60, 60)]),
            (bill, f"payer_account_id, {reasons}", [("000011112222", 0, 0, 0), ("1234567", 0, 0, 0)]),
        ):  # fmt: skip
            assert made.ask(f"select {what} from {table} group by all order by all", table) == expected


def test_another_clouds_lines_count_toward_no_agreement_and_no_credits() -> None:
    """July has 10.00 of AWS, 3.00 of its Marketplace, 5.00 of its credits, and 100.00 and a credit of 20.00 of
    Microsoft; June and August have 100.00 of Microsoft alone, so no bill.

    An agreement with the Marketplace counts 13.00, one without it 10.00, both in July; 5.00 of credits are used.
    Microsoft has not issued an invoice: July is over, for AWS has.
    """
    microsoft = {"HostProviderName": "Microsoft", "ServiceProviderName": "Microsoft", "BilledCost": "100"}
    microsoft |= {"BillingAccountId": "1234567", "InvoiceId": ""}
    credit = {"ChargeCategory": "Credit", "BilledCost": "-5", "ChargeDescription": "MAP"}
    lines = [
        {"BilledCost": "10"},
        {"BilledCost": "3", "HostProviderName": "AWS", "ServiceProviderName": "Datadog"},
        credit,
        microsoft,
        {**microsoft, **credit, "BilledCost": "-20", "ChargeDescription": "Sponsorship"},
    ]
    bills = {MONTH: normalized(focus_lines([line | HOUR for line in lines], MONTH))}
    for month in ("2026-06", "2026-08"):
        hour = {"ChargePeriodStart": f"{month}-14 10:00:00", "ChargePeriodEnd": f"{month}-14 11:00:00"}
        bills[month] = normalized(focus_lines([microsoft | hour], month))
    period = {"first_month": "2026-06", "last_month": "2026-09", "commitment_usd": "100"}
    agreements = [{"name": name, "marketplace": name == "with", "periods": [period]} for name in ("with", "without")]
    agreement, pool = "detail_edp_burn_down_monthly", "detail_credit_pool_monthly"
    with Lab(bills, {}, listed=FOCUS, terms=Terms.model_validate({"agreements": agreements})) as made:
        what = "agreement_name, eligible_cost_usd, is_open_month"
        found = made.ask(f"select {what} from {agreement} order by all", agreement)
        assert found == [("with", 13, False), ("without", 10, False)]
        assert made.ask(f"select pool_name, used_usd, is_open_month from {pool}", pool) == [("MAP", 5, False)]


def test_lines_without_account_resource_or_invoice_are_kept() -> None:
    """FOCUS leaves SubAccountId and InvoiceId empty on some lines; an inner join on either would lose them."""
    tax = {"ChargeCategory": "Tax", "SubAccountId": "", "InvoiceId": "", "BilledCost": "3", "EffectiveCost": "3"}
    what = "charge_category, account_id, invoice_id, resource_id, billed_cost_usd, list_cost_usd"
    assert staged(what, tax) == [("Tax", "000011112222", "", None, Decimal(3), None)]


def test_an_unknown_charge_category_counts_as_billed_and_is_reported() -> None:
    """A later FOCUS may have a new category: its money is kept, and a check names it."""
    new = {"ChargeCategory": "Levy", "BilledCost": "2", "EffectiveCost": "2"}
    what = "charge_type, charge_category, is_known_charge_type, effective_cost_usd, billed_cost_usd"
    assert staged(what, new) == [("Levy", "Adjustment", False, Decimal(2), Decimal(2))]


def test_what_a_commitment_covers_is_covered_whatever_its_resource() -> None:
    """A fleet's hours that a plan and a reservation cover, list 3 and 2, next to an hour of a node at list 5 on demand.

    Of 10 that commitments could cover each kind covers its own: the plan 3 of 3 + 5, the reservation 2 of 2 + 5. What
    the plan left unused, 1, and all of the cost, 1.5 + 1.2 + 5, stand against the whole list cost of 10.
    """
    fleet = {"ResourceId": "urn:compute-fleet:37", "SkuMeter": "Compute", "PricingUnit": "Hours"}
    used = {**fleet, "PricingCategory": "Committed", "CommitmentDiscountStatus": "Used"}
    reserved = {
        "CommitmentDiscountId": "arn:aws:ec2:us-west-2:000011112222:reserved-instances/ri-1",
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountType": "Reserved Instance",
    }
    lines = (
        {**used, **PLAN, "ListCost": "3", "EffectiveCost": "1.5"},
        {**used, **reserved, "ListCost": "2", "EffectiveCost": "1.2"},
        {**reserved, "ChargeCategory": "Purchase", "ChargeFrequency": "Recurring", "BilledCost": "1.2"},
        {**NODE, "ListCost": "5", "BilledCost": "5", "EffectiveCost": "5"},
        {**PLAN, "PricingCategory": "Committed", "CommitmentDiscountStatus": "Unused", "EffectiveCost": "1"},
    )
    coverage, rate = "mart_commitment_coverage_daily", "mart_effective_savings_rate_monthly"
    with lab(*lines) as made:
        figures = "sum(covered_list_cost_usd), sum(eligible_list_cost_usd)"
        kinds = f"select commitment_kind, {figures} from {coverage} where commitment_kind in "
        kinds += "('compute_savings_plan', 'reserved_instance') group by commitment_kind order by commitment_kind"
        assert made.ask(kinds, coverage) == [("compute_savings_plan", 3, 8), ("reserved_instance", 2, 7)]
        figures = "list_cost_usd, usage_cost_usd, unused_cost_usd, effective_savings_rate_ratio"
        (classic,) = made.ask(f"select {figures} from {rate} where savings_scope = 'classic'", rate)
        assert [float(figure) for figure in classic] == pytest.approx([10, 7.7, 1, 0.13])


def test_what_is_consumed_in_another_unit_counts_in_the_one_that_is_priced() -> None:
    """An hour of 8 GPUs consumed as 3,600 seconds is 8 accelerator-hours, not 28,800; 500 thousands of tokens for 0.03,
    consumed as 500,000, are half a million at 0.06 per million, not 500 million.
    """
    node = {
        **NODE,
        "ConsumedUnit": "Seconds",
        "ConsumedQuantity": "3600",
        "PricingQuantity": "1",
        "EffectiveCost": "55",
    }
    tokens = {
        "x_ServiceCode": "AmazonBedrock",
        "ServiceName": "Amazon Bedrock",
        "SkuMeter": "USE1-NovaLite-input-tokens",
        **{"PricingUnit": "1000 Tokens", "PricingQuantity": "500", "EffectiveCost": "0.03"},
        **{"ConsumedUnit": "Tokens", "ConsumedQuantity": "500000"},
    }
    assert ledger("sum(accelerator_hours)", node) == [(Decimal(8),)]
    with lab(tokens) as made:
        what = "million_tokens, unit_price_usd"
        rows = made.ask(f"select {what} from detail_bedrock_usage_daily", "detail_bedrock_usage_daily")
    assert rows == [(Decimal("0.5"), Decimal("0.06"))]


def test_a_billing_period_from_the_middle_of_a_month_is_of_that_month() -> None:
    """10.00 of a period from 1 July and 7.00 of one from 15 July to 15 August are 17.00 of July, not of two Julys."""
    costs = {"BilledCost": "10", "EffectiveCost": "10"}, {"BilledCost": "7", "EffectiveCost": "7"}
    whole = focus_lines([{**HOUR, **costs[0]}, {**HOUR, **costs[1]}], MONTH)
    whole[1] |= {"BillingPeriodStart": f"{MONTH}-15T00:00:00Z", "BillingPeriodEnd": "2026-08-15T00:00:00Z"}
    with Lab({MONTH: normalized(whole)}, {}, listed=FOCUS) as made:
        table = "mart_invoice_reconciliation_monthly"
        rows = made.ask(
            f"select strftime(billing_month, '%Y-%m-%d'), billed_cost_usd, ledger_cost_usd from {table}", table
        )
    assert rows == [(f"{MONTH}-01", 17, 17)]
