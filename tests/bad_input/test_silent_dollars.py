"""Values that would move dollars without a word: each is a warning with its dollars, and the month is published."""

from __future__ import annotations

import gzip
from decimal import Decimal
from typing import Any

import pytest
from support.bills import bedrock_hour, instance_hour, write_config, write_events, write_export
from support.cur_exports import CUR2_LINE, csv_text, cur2_export, packed, parquet, stored
from support.ledgers import ask, lazy_warehouse, publish_tables
from support.spoiled import HOURS, MONTH, Ledger, run_events

HOUR = CUR2_LINE | {"line_item_unblended_cost": "55.04", "pricing_public_on_demand_cost": "55.04"}


def warnings(tmp_path: Any, lines: list[dict[str, Any]], name: str = "a-1.csv.gz") -> list[str]:
    content = parquet(lines) if name.endswith(".parquet") else packed(csv_text(lines))
    (raw,) = stored(cur2_export(tmp_path, {name: content}), tmp_path / "raw")
    return [warning.partition(": ")[2] for warning in raw.warnings]


@pytest.mark.parametrize("word", ["null", "NULL", "None", ""])
def test_a_cost_that_is_the_word_null(tmp_path: Any, word: str) -> None:
    """Of three hours at 55.04 the last two bill nothing: 110.08."""
    lines = [HOUR, *[HOUR | {"line_item_unblended_cost": word}] * 2]
    assert warnings(tmp_path, lines) == [
        "2 lines bill 0 without line_item_unblended_cost, so the cost of that usage is unknown; at public "
        "prices it is 110.08; the first is row 3. Have the file delivered again."
    ]


def test_a_cost_that_is_null_in_parquet(tmp_path: Any) -> None:
    lines = [HOUR, *[HOUR | {"line_item_unblended_cost": None}] * 2]
    assert warnings(tmp_path, lines, "a-1.parquet") == [
        "2 lines bill 0 without line_item_unblended_cost, so the cost of that usage is unknown; at public "
        "prices it is 110.08. Have the file delivered again."
    ]


@pytest.mark.parametrize("name", ["a-1.csv.gz", "a-1.parquet"])
def test_columns_that_differ_only_in_case(tmp_path: Any, name: str) -> None:
    """The first line bills the same in both, the second 55.04 in the one that is read."""
    lines = [HOUR | {"LINE_ITEM_UNBLENDED_COST": cost} for cost in ("55.04", "99.00")]
    (found,) = (one for one in warnings(tmp_path, lines, name) if "another value" in one)
    assert found.startswith(
        "1 line bills 55.04 with another value in LINE_ITEM_UNBLENDED_COST, which is not read, than in line_item_"
    )


def test_columns_that_are_both_read(tmp_path: Any) -> None:
    """Of three lines the second bills 55.04 and has 99.00 in the other column; the third has nothing there."""
    lines = [HOUR | {"Line_Item_Unblended_Cost": cost} for cost in ("55.04", "99.00", "")]
    (found,) = (one for one in warnings(tmp_path, lines) if "another value" in one)
    assert found.startswith(
        "1 line bills 55.04 with another value in Line_Item_Unblended_Cost, which counts only where the other is "
        "empty, than in line_item_unblended_cost"
    )


def test_a_tag_twice_in_one_object(tmp_path: Any) -> None:
    """Two of three lines name two runs, 110.08; the same value twice is no fault."""
    tags = ['{"user_run_id": "a", "user_run_id": "b"}', '{"user_run_id": "a", "user_run_id": "a"}']
    lines = [HOUR | {"resource_tags": text} for text in (tags[0], tags[1], tags[0])]
    assert warnings(tmp_path, lines) == [
        "2 lines bill 110.08 with a key twice in resource_tags, of which the last counts; "
        "the first is row 2. Have the file delivered again."
    ]


def checked(ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    """The rows of each warning about the charges, after a build."""
    return {check["check"]: check["sample"] for check in ledger.builds("fct_charge").checks()}


def test_usage_of_another_month_an_end_before_its_start_and_a_covered_cost_of_null(ledger: Ledger) -> None:
    """An hour that a plan covers has no cost in its own column; at public prices it is 55.04."""
    late = instance_hour("2026-06-30T23", "i-1", "p5.48xlarge", "55.04")
    backwards = {
        "line_item_usage_type": "USW2-EBS:VolumeUsage.gp3",
        "line_item_resource_id": "vol-1",
        "line_item_unblended_cost": "3.50",
        "line_item_usage_start_date": f"{MONTH}-02T00:00:00.000Z",
        "line_item_usage_end_date": f"{MONTH}-01T00:00:00.000Z",
    }
    covered = instance_hour(f"{MONTH}-03T04", "i-1", "p5.48xlarge", "55.04") | {
        "line_item_line_item_type": "SavingsPlanCoveredUsage",
        "savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::000011112222:savingsplan/sp-1",
        "savings_plan_savings_plan_effective_cost": "null",
        "pricing_public_on_demand_cost": "55.04",
    }
    ledger.restate(*HOURS, late, backwards, covered)
    found = checked(ledger)
    (row,) = found["usage_dated_outside_its_month"]
    assert (row["billing_month"], row["last_usage_date"]) == (f"{MONTH}-01", "2026-06-30")
    assert float(row["effective_cost_usd"]) == 55.04
    (row,) = found["line_ends_before_it_starts"]
    assert float(row["effective_cost_usd"]) == 3.50
    (row,) = found["use_under_a_commitment_without_its_cost"]
    assert (float(row["instance_hours"]), float(row["list_cost_usd"])) == (1, 55.04)


def test_a_file_replaced_by_one_of_the_same_size(tmp_path: Any) -> None:
    """Six hours at 55.04 become six at 65.04 under the same manifest: 60.00 more."""
    config = write_config(tmp_path, billing="export", runs=write_events(tmp_path / "runs", run_events()))
    published, sizes = None, set[int]()
    for cost in ("55.04", "65.04"):
        lines = [{**line, "line_item_unblended_cost": cost} for line in HOURS]
        export = write_export(tmp_path, {MONTH: lines}, execution="one")
        (bill,) = (export / "data").rglob("*.csv.gz")
        # Packed, the two differ in size.
        bill.write_bytes(gzip.decompress(bill.read_bytes()))
        sizes.add(bill.stat().st_size)
        published = publish_tables(config, ["fct_restatement"]).lake.publications.newest()
    assert published and len(sizes) == 1
    (check,) = (one for one in published.checks if one["check"] == "delivery_changed_under_its_id")
    assert [float(row["moved_billed_cost_usd"]) for row in check["sample"]] == [60.0]


def test_a_run_on_a_reservation_without_its_cost(tmp_path: Any) -> None:
    """Of the run's two hours one costs 55.04 and one is unknown, and so are the run and what an epoch of it costs.

    The first epoch ended after half an hour and cost 27.52; the second reaches into the unknown hour.
    """
    reserved = HOURS[1] | {"line_item_line_item_type": "DiscountedUsage", "line_item_unblended_cost": "0"}
    reserved |= {"pricing_public_on_demand_cost": "55.04"}
    write_export(tmp_path, {MONTH: [HOURS[0] | {"pricing_public_on_demand_cost": "55.04"}, reserved]})
    epochs = [
        {"event": "epoch_completed", "run_id": "good", "attempt": 1, "epoch": epoch, "at": f"{MONTH}-01T0{at}:00Z"}
        for epoch, at in ((1, "0:30"), (2, "1:30"))
    ]
    write_events(tmp_path / "runs", [*run_events(), *epochs])
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    costs = "list_cost_usd, effective_cost_usd, billed_cost_usd"
    assert ask(builder, f"select {costs}, cost_per_epoch_usd from mart_run_cost").rows() == [
        (Decimal("110.08"), None, Decimal("55.04"), None)
    ]
    assert ask(builder, "select epoch_index, effective_cost_usd from mart_epoch_cost order by 1").rows() == [
        (1, Decimal("27.52")),
        (2, None),
    ]
    for unknown in (
        "select effective_cost_usd from mart_restatement",
        "select used_cost_usd from detail_commitment_use_hourly where commitment_kind <> 'none'",
        "select tag_coverage_ratio from detail_tag_coverage_monthly where tag = 'run_id'",
        "select effective_cost_usd from detail_charge_monthly where charge_type = 'DiscountedUsage'",
    ):
        assert ask(builder, unknown).rows() == [(None,)]


def test_machine_time_with_an_empty_cost(tmp_path: Any) -> None:
    """Of the run's two hours one costs 55.04 and the cell of the other is empty: billed 55.04, and what the run, its
    use on demand and the savings rate come to is unknown."""
    listed = {"pricing_public_on_demand_cost": "55.04"}
    write_export(tmp_path, {MONTH: [HOURS[0] | listed, HOURS[1] | listed | {"line_item_unblended_cost": ""}]})
    write_events(tmp_path / "runs", run_events())
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    costs = "list_cost_usd, effective_cost_usd, billed_cost_usd, cost_per_million_tokens_usd"
    assert ask(builder, f"select {costs} from mart_run_cost").rows() == [
        (Decimal("110.08"), None, Decimal("55.04"), None)
    ]
    for unknown in (
        "select on_demand_cost_usd from mart_commitment_coverage_daily where commitment_kind = 'compute_savings_plan'",
        "select effective_savings_rate_ratio from mart_effective_savings_rate_monthly where savings_scope = 'classic'",
    ):
        assert ask(builder, unknown).rows() == [(None,)]
    assert ask(builder, "select sum(line_count) from fct_charge where is_cost_unknown").rows() == [(1,)]


def test_other_usage_with_an_empty_cost(tmp_path: Any) -> None:
    """A bucket bills 3.00 of two lines and a model 2.00 of two; the cells of the others are empty, as are those of a
    fee, of a line without usage and of one listed at 0, which cost nothing. Known are 55.04 + 3 + 2, all is unknown.

    So is what the checkpoint in the bucket and a million tokens cost.
    """
    empty = {"line_item_unblended_cost": ""}
    stored_bytes = {"line_item_usage_type": "USW2-TimedStorage-ByteHrs", "line_item_product_code": "AmazonS3"}
    kept = (
        HOURS[0]
        | stored_bytes
        | {"line_item_resource_id": "ckpt", "product_instance_type": "", "pricing_unit": "GB-Mo"}
    )
    tokens = bedrock_hour("USE1-Claude4.6Sonnet-output-tokens", "1M tokens", "1", "2.00")
    lines = [HOURS[0], kept | {"line_item_unblended_cost": "3.00"}, kept | empty, tokens, tokens | empty]
    lines += [kept | empty | more for more in ({"line_item_line_item_type": "Fee"}, {"line_item_usage_amount": "0"})]
    lines.append(kept | empty | {"pricing_public_on_demand_cost": "0"})
    write_export(tmp_path, {MONTH: lines})
    saved = {"event": "checkpoint_saved", "run_id": "good", "attempt": 1, "at": f"{MONTH}-01T00:30:00Z"}
    saved |= {"checkpoint_id": "c-1", "step": 1, "bytes": 1 << 30, "uri": "s3://ckpt/c-1"}
    write_events(tmp_path / "runs", [*run_events(), saved])
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    assert ask(builder, "select sum(line_count) from fct_charge where is_cost_unknown").rows() == [(2,)]
    costs = "billed_cost_usd, effective_cost_usd, is_cost_partial"
    assert ask(builder, f"select {costs} from mart_cost_summary_monthly where dimension = 'total'").rows() == [
        (Decimal("60.04"), Decimal("60.04"), True)
    ]
    per_million = "effective_cost_usd, cost_per_million_output_usd, missing_evidence"
    assert ask(builder, f"select {per_million} from mart_inference_cost_daily where platform = 'bedrock'").rows() == [
        (None, None, "cost: the bill has no cost of some use")
    ]
    assert ask(builder, "select retention_cost_usd from fct_checkpoint_retention").rows() == [(None,)]


def test_discounts_that_a_bill_has_before_net_columns(ledger: Ledger) -> None:
    """Six hours of one payer have 10.00 each in their lines, and one of them 5.00 on a line of its own.

    Another payer's net column has 9.90 of 11.00, and nothing of the 30.00 that a plan took for its other hour.
    """
    lines = [line | {"discount_total_discount": "-10.00"} for line in HOURS]
    off = {"line_item_line_item_type": "PrivateRateDiscount", "line_item_unblended_cost": "-5.00"}
    other = HOURS[0] | {"bill_payer_account_id": "000099998888", "line_item_usage_account_id": "000099998888"}
    netted = other | {"line_item_unblended_cost": "11.00", "line_item_net_unblended_cost": "9.90"}
    covered = other | {"line_item_line_item_type": "SavingsPlanCoveredUsage", "line_item_net_unblended_cost": "55.04"}
    covered |= {"savings_plan_savings_plan_effective_cost": "30.00"}
    negation = other | {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": "-55.04"}
    row_discount = other | {"line_item_line_item_type": "EdpDiscount", "line_item_unblended_cost": "-1.10"}
    ledger.restate(*lines, lines[0] | off, netted, covered, negation, row_discount)
    found = {check["check"]: check["sample"] for check in ledger.builds("detail_bill_identity_monthly").checks()}
    (row,) = found["in_line_discounts_in_no_effective_cost"]
    assert (row["payer_account_id"], float(row["discount_usd"])) == ("000011112222", 60)
    (row,) = found["discounts_on_accelerators_in_no_cost_of_a_run"]
    assert (row["payer_account_id"], float(row["discount_usd"])) == ("000011112222", -5)
    (row,) = found["covered_usage_before_discounts"]
    assert (row["payer_account_id"], float(row["effective_cost_usd"])) == ("000099998888", 30)


def test_numbers_whose_product_or_quotient_no_table_holds(tmp_path: Any) -> None:
    """3e13 tokens of a dataset of 1 are no number of epochs; 1e15 tokens of each of a million devices are no number of
    tokens, and 1e15 steps of 1e15 samples of 1e15 tokens are compared as they are."""
    most = 10**15
    facts = {"dataset_tokens": 1, "seq_len": most, "global_batch_samples": most, "params_active": most}
    facts |= {"tokens_unit": "device", "tokens_unit_count": 10**6}
    for name, resource, tokens, own in (("a", "i-1", 3e13, {"dataset_tokens": 1}), ("b", "i-2", most, facts)):
        start, *others = (event | {"run_id": name} for event in run_events())
        others = [event | {"resource": resource} if "resource" in event else event for event in others]
        epoch = {"event": "epoch_completed", "run_id": name, "at": f"{MONTH}-01T00:30:00Z", "epoch": 1, "step": most}
        seen = epoch if name == "b" else {"event": "heartbeat", "run_id": name, "at": epoch["at"]}
        write_events(tmp_path / "runs", [start | own, *others, seen | {"tokens_seen": tokens}], f"{name}.jsonl")
    write_export(tmp_path, {MONTH: [HOURS[0], HOURS[0] | {"line_item_resource_id": "i-2"}]})
    builder = lazy_warehouse(write_config(tmp_path, billing="export", runs="runs"))
    found = ask(builder, "select run_id, epoch_completed_count, tokens_seen_count from dim_run order by 1")
    assert found.rows() == [("a", None, 3e13), ("b", Decimal(1), None)]
