"""Each gate of a verdict, and a test that tries to get past it (pure rows; the golden portfolio has the ledger's)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pipelines.analysis.comparison import Context, compare
from pipelines.analysis.estimate import estimate
from pipelines.analysis.quality import Margin
from pipelines.analysis.registration import Registration
from pipelines.analysis.verdict import price_change_to_flip

GPU, TRAINIUM = "p5.48xlarge", "trn1.32xlarge"
BASE, HALF = (10, 11, 12.1), (5, 5.5, 6.05)
TARGET = ("eval_loss", "min", 2.05)


def run(name: str, instance_type: str, cost: float | None, **more: Any) -> dict[str, Any]:
    at = datetime(2026, 7, 14, 10)
    told = {
        "run_id": name,
        "cost_basis": "effective",
        "billing_currency": "USD",
        "instance_type": instance_type,
        "status": "completed",
        "started_at": at,
        "ended_at": at.replace(hour=11),
        "whole_cost_usd": cost if cost is None else Decimal(str(cost)),
        "unit_cost_to_target_usd": cost if cost is None else Decimal(str(cost)),
        "unit_cost_per_epoch_usd": None,
        "unit_cost_per_million_tokens_usd": None,
        **dict.fromkeys((f"{kind}_cost_usd" for kind in ("api", "nodemap", "tag", "type_match")), Decimal(0)),
        "imds_cost_usd": Decimal(str(cost or 0)),
        "first_billing_month": date(2026, 7, 1),
        "last_billing_month": date(2026, 7, 1),
        "open_billing_month": None,
        "newest_usage_date": date(2026, 7, 31),
        "is_impossible": False,
    }
    return {**told, **more}


def side(instance_type: str, costs: Sequence[float], **more: Any) -> list[dict[str, Any]]:
    return [run(f"{instance_type[:3]}-{number}", instance_type, cost, **more) for number, cost in enumerate(costs, 1)]


def context(
    targets: Mapping[str, tuple[str, str, float]] | None = None, final: Mapping[str, float | None] | None = None
) -> Context:
    return Context(
        target=lambda name: TARGET if targets is None else targets.get(name),
        final=lambda metric, names: dict(final or {}),
        residual=lambda row: 0.0,
    )


def registered(**more: Any) -> Registration:
    told: dict[str, Any] = {
        "name": "july",
        "registered_on": date(2026, 7, 1),
        "seal": "0" * 64,
        "target_value": None,
        "planned_runs": 3,
        "cost_basis": "effective",
        "margin": Margin("eval_loss", "min", 0.03),
        "excluded": {},
        "pairs": (),
    }
    return Registration(**{**told, **more})


FINAL = {"p5.-1": 2.00, "p5.-2": 2.01, "p5.-3": 2.02, "trn-1": 2.00, "trn-2": 2.01, "trn-3": 2.02}


def judged(gpu: list[dict[str, Any]], trainium: list[dict[str, Any]], **more: Any) -> tuple[str, str]:
    row = compare(gpu, trainium, more.get("context") or context(final=FINAL), more.get("registration"))
    return row["verdict"], row["verdict_reason"]


def test_half_the_cost_thrice_is_proven() -> None:
    """What the gates below take away: without it they would prove nothing."""
    assert judged(side(GPU, BASE), side(TRAINIUM, HALF))[0] == "proven"
    assert judged(side(GPU, BASE), side(TRAINIUM, HALF), registration=registered())[0] == "proven"


def test_two_runs_a_side_prove_nothing_however_alike() -> None:
    verdict, reason = judged(side(GPU, (10, 10.0001)), side(TRAINIUM, (1, 1.0001)))
    assert verdict == "indicative"
    assert "2 runs on GPU and 2 runs on Trainium, where 3 a side are needed" in reason


def test_fewer_runs_than_planned_prove_nothing() -> None:
    verdict, reason = judged(side(GPU, BASE), side(TRAINIUM, HALF), registration=registered(planned_runs=5))
    assert (verdict, "where 5 a side are planned" in reason) == ("indicative", True)


def test_planning_fewer_than_three_lowers_no_floor() -> None:
    plan = registered(planned_runs=1)
    assert judged(side(GPU, BASE[:1]), side(TRAINIUM, HALF[:1]), registration=plan)[0] == "indicative"


def test_runs_that_all_cost_the_same_have_no_interval() -> None:
    verdict, reason = judged(side(GPU, (10, 10, 10)), side(TRAINIUM, (5, 5, 5)))
    assert (verdict, "nothing shows how costs vary" in reason) == ("indicative", True)


@pytest.mark.parametrize("cost", [0, -3.5])
def test_a_run_that_cost_nothing_or_less_saves_nothing(cost: float) -> None:
    """Else the saving would be all of the spend, or more."""
    verdict, reason = judged(side(GPU, BASE), side(TRAINIUM, (5, 5.5, cost)))
    assert verdict == "not comparable"
    assert f"run trn-3 has a cost to target of {cost:.2f} on the effective basis" in reason


def test_a_refund_to_failed_runs_makes_no_saving() -> None:
    failed = run("trn-9", TRAINIUM, -20, status="failed", unit_cost_to_target_usd=None)
    verdict, reason = judged(side(GPU, BASE), [*side(TRAINIUM, HALF), failed])
    assert (verdict, "less than nothing" in reason) == ("not comparable", True)


def test_failed_runs_are_not_left_out_of_one_side() -> None:
    """16.55 spent well and 16.55 in vain: each Trainium run bears twice its cost, so it is no cheaper than GPU."""
    failed = run("trn-9", TRAINIUM, 16.55, status="failed", unit_cost_to_target_usd=None)
    row = compare(side(GPU, BASE), [*side(TRAINIUM, HALF), failed], context(), None)
    assert row["saving_ratio"] == pytest.approx(0)
    assert (row["candidate_failed_run_count"], row["verdict"]) == (1, "inconclusive")


def test_an_open_month_is_not_reconciled() -> None:
    gpu = side(GPU, BASE)
    gpu[1]["open_billing_month"] = date(2026, 7, 1)
    verdict, reason = judged(gpu, side(TRAINIUM, HALF))
    assert (verdict, "July 2026 is not reconciled" in reason) == ("indicative", True)


def test_a_price_list_that_changed_after_the_runs_is_stale_however_recent_they_are() -> None:
    """The runs of both sides ended on 14 July; the day after, the GPU's list price changed."""
    changed = {GPU: date(2026, 7, 15)}
    told = replace(
        context(final=FINAL), repriced=lambda name, last, newest: changed.get(name) if last < newest else None
    )
    verdict, reason = judged(side(GPU, BASE), side(TRAINIUM, HALF), context=told)
    assert verdict == "indicative"
    assert "the list price of p5.48xlarge changed on 2026-07-15, after its last run of 2026-07-14" in reason


def test_a_verdict_that_failed_runs_alone_make_says_so() -> None:
    """Costs alike, and a failed GPU run as dear as all others together: half is saved by that alone."""
    gpu = [*side(GPU, BASE), run("failed", GPU, 33.1, status="failed", unit_cost_to_target_usd=None)]
    row = compare(gpu, side(TRAINIUM, BASE), context(final=FINAL), None)
    assert (row["verdict"], row["saving_ratio"]) == ("proven", pytest.approx(0.5))
    assert row["verdict_sensitivity"].startswith("inconclusive if failed runs' cost were left out")
    assert "left out" not in compare(side(GPU, BASE), side(TRAINIUM, HALF), context(), None)["verdict_sensitivity"]


def test_a_price_of_last_year_is_stale() -> None:
    """The GPU side ran in December 2025, 230 days before the last use: its price may have fallen since."""
    at = datetime(2025, 12, 13, 10)
    gpu = side(GPU, BASE, started_at=at, ended_at=at)
    verdict, reason = judged(gpu, side(TRAINIUM, HALF))
    assert verdict == "indicative"
    assert "the prices of p5.48xlarge are of 2025-12-13, over 183 days before the last use" in reason


def test_quality_that_nobody_registered_or_reached_claims_nothing() -> None:
    by_epoch = {"unit_cost_to_target_usd": None, "unit_cost_per_epoch_usd": Decimal(7)}
    gpu = [row | by_epoch | {"unit_cost_per_epoch_usd": row["whole_cost_usd"]} for row in side(GPU, BASE)]
    trainium = [row | by_epoch | {"unit_cost_per_epoch_usd": row["whole_cost_usd"]} for row in side(TRAINIUM, HALF)]
    verdict, reason = judged(gpu, trainium, context=context(targets={}))
    assert (verdict, "no quality margin is registered and no target" in reason) == ("indicative", True)


def test_a_missing_final_metric_is_named() -> None:
    known = context(final=FINAL | {"trn-2": None})
    verdict, reason = judged(side(GPU, BASE), side(TRAINIUM, HALF), context=known, registration=registered())
    assert (verdict, reason) == ("not comparable", "the final eval_loss of run trn-2 is not recorded")


def test_a_worse_model_saves_nothing() -> None:
    """Worse by 0.04 with the same spread: beyond the margin of 0.03 before any doubt is added."""
    known = context(final=FINAL | {"trn-1": 2.04, "trn-2": 2.05, "trn-3": 2.06})
    row = compare(side(GPU, BASE), side(TRAINIUM, HALF), known, registered())
    assert (row["verdict"], row["quality_status"]) == ("not comparable", "missed")
    assert "saving_ratio" not in row


def test_a_registration_of_after_the_runs_counts_for_nothing() -> None:
    """Its wide margin and its exclusion of the dear run would have made a proof."""
    late = registered(registered_on=date(2026, 7, 20), excluded={"trn-4": "too dear"})
    trainium = [*side(TRAINIUM, HALF), run("trn-4", TRAINIUM, 90)]
    row = compare(side(GPU, BASE), trainium, context(final=FINAL), late)
    assert (row["verdict"], row["excluded_run_count"], row["candidate_run_count"]) == ("indicative", 0, 4)
    assert (
        "registration july of 2026-07-20 came after runs of both sides and counts for nothing" in row["verdict_reason"]
    )


def test_a_registration_may_know_the_baseline_but_not_what_it_is_held_against() -> None:
    """GPU ran on 1 July, this was registered on the 10th, Trainium ran on the 14th."""
    at = datetime(2026, 7, 1, 10)
    told = registered(registered_on=date(2026, 7, 10))
    gpu = side(GPU, BASE, started_at=at, ended_at=at)
    assert judged(gpu, side(TRAINIUM, HALF), registration=told)[0] == "proven"


def test_a_declared_workload_does_not_make_unlike_targets_alike() -> None:
    targets = {"p5.-1": TARGET, "p5.-2": TARGET, "p5.-3": TARGET} | dict.fromkeys(
        ("trn-1", "trn-2", "trn-3"), ("eval_loss", "min", 2.5)
    )
    verdict, reason = judged(side(GPU, BASE), side(TRAINIUM, HALF), context=context(targets=targets))
    assert verdict == "not comparable"
    assert "declare different targets: eval_loss <= 2.05 and eval_loss <= 2.5" in reason


def test_a_registered_target_must_be_the_runs_own() -> None:
    verdict, reason = judged(side(GPU, BASE), side(TRAINIUM, HALF), registration=registered(target_value=1.9))
    assert verdict == "not comparable"
    assert "registration july has the target eval_loss <= 1.9 and its runs eval_loss <= 2.05" in reason


def test_tokens_of_a_core_taken_for_the_jobs_are_caught_by_the_chips_peak() -> None:
    def by_tokens(rows: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
        return [
            row | {"unit_cost_to_target_usd": None, "unit_cost_per_million_tokens_usd": row["whole_cost_usd"], **more}
            for row in rows
        ]

    cheap = by_tokens(side(TRAINIUM, (0.005, 0.0055, 0.006)), is_impossible=True)
    verdict, reason = judged(by_tokens(side(GPU, BASE)), cheap, registration=registered())
    assert verdict == "not comparable"
    assert "run trn-1 records more tokens than the peak of its chips allows" in reason


def test_a_basis_without_a_price_is_not_filled_from_another() -> None:
    gpu = side(GPU, BASE)
    gpu[0] |= {"cost_basis": "list", "whole_cost_usd": None, "unit_cost_to_target_usd": None}
    assert judged(gpu, side(TRAINIUM, HALF)) == ("not comparable", "the list cost of run p5.-1 is not known")


def test_runs_still_going_are_left_out_and_said() -> None:
    going = run("trn-9", TRAINIUM, 1, status="running")
    verdict, reason = judged(side(GPU, BASE), [*side(TRAINIUM, HALF), going])
    assert (verdict, "1 without a recorded end left out" in reason) == ("proven", True)


def test_pairs_are_used_where_they_were_registered() -> None:
    pairs = [("p5.-1", "trn-1"), ("p5.-2", "trn-2"), ("p5.-3", "trn-3")]
    row = compare(
        side(GPU, (10, 100, 1000)), side(TRAINIUM, (5, 52, 490)), context(final=FINAL), registered(pairs=pairs)
    )
    assert (row["interval_method"], row["verdict"]) == ("paired", "proven")


def test_price_that_flips_the_verdict_is_the_published_one() -> None:
    """Facts training-runs S8: trn1 0.4865 a million tokens, p5 at $98.32 an hour 0.5241: even at of $91.27."""
    change = price_change_to_flip(estimate([0.5241], [0.4865]), "indicative")
    assert 98.32 * (1 + change) == pytest.approx(91.27, abs=0.01)
