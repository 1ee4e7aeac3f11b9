"""Recommendations: the eight scenarios of facts training-runs 8 as reviewed, and what overrides them."""

from __future__ import annotations

import csv
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis.recommendation import (
    PILOT,
    Decision,
    Finding,
    Rule,
    arithmetic,
    decide,
    repayment,
    rules_of,
    weigh,
    weigh_measured,
)
from pipelines.base import resources

# A mainstream fine-tune without a deadline that costs less than it saves over the horizon.
KNOWN: dict[str, Any] = {
    "purpose": "finetune",
    "architecture": "mainstream",
    "custom_cuda": "none",
    "neuron_supported": "yes",
    "runs_in_horizon": 7.0,
    "break_even_runs": 7.0,
    "months_since_architecture_change": 4.0,
    "settling_months": 2,
    "stable_months": 6,
    "port_cost_usd": 16_000.0,
    "saving_per_run_usd": 2_400.0,
    "baseline_lead_days": 20.0,
    "candidate_lead_days": 5.0,
    "need_within_days": inf,
    "team_is_cuda_native": "no",
    "payback_months": 7.0,
    "horizon_months": 12.0,
    "monthly_cost_trend_usd": -1.0,
}


def pair(
    verdict: str,
    reason: str = "",
    saving: float | None = None,
    low: float | None = None,
    high: float | None = None,
    more_runs: int | None = 0,
) -> dict[str, Any]:
    """The comparison of a workload's two sides, as mart_silicon_comparison has it."""
    return {
        "baseline_instance_type": "p5.48xlarge",
        "verdict": verdict,
        "verdict_reason": reason,
        "saving_ratio": saving,
        "saving_low_ratio": low,
        "saving_high_ratio": high,
        "more_baseline_run_count": 0,
        "more_candidate_run_count": more_runs,
    }


# With the expected value of its port.
Measured = tuple[dict[str, Any] | None, float | None]
PROVEN: Measured = pair("proven", "", 0.4, 0.3, 0.5), 12_800.0
DISPROVEN: Measured = pair("disproven", "", -0.4, -0.5, -0.3), None
TIE: Measured = pair("inconclusive", "", 0.0, -0.04, 0.04), None


def _rows(name: str) -> list[dict[str, Any]]:
    with (resources.REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [{k: int(v) if k.endswith("_no") else v for k, v in row.items()} for row in csv.DictReader(file)]


RULES = [rule for rule in rules_of(_rows("ref_recommendation_rule")) if rule.kind != "serving_stop"]
MISSING = "missing inputs"
SITUATIONS = {rule.name: rule.situation for rule in RULES}


def of(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


def recommend(inputs: dict[str, Any], measured: Measured = (None, None)) -> Decision:
    stops, scenarios = (
        [weigh_measured(rule, inputs, measured[0]) for rule in RULES if rule.kind == kind]
        for kind in ("hard_stop", "scenario")
    )
    return decide([*stops, arithmetic(*measured, inputs), *scenarios], SITUATIONS)


def test_the_reviewed_rules_are_the_eight_of_the_facts() -> None:
    """Their numbers and recommendations as the table of facts training-runs 8 has them; 4 and 6 come first.

    A ninth is of serving: closed models stay on Bedrock (design 6).
    """
    recommended = {row["rule_no"]: row["recommendation"] for row in _rows("ref_recommendation_rule")}
    assert recommended.pop(9) == "bedrock"
    assert recommended == {number: "gpu" if number in (3, 4, 5, 7) else "trainium" for number in range(1, 9)}
    assert [rule.name for rule in RULES[:2]] == ["heavy_custom_cuda", "gpu_constrained"]
    named = {c.name for rule in RULES for each in rule.alternatives for c in each}
    assert named <= set(KNOWN)


@pytest.mark.parametrize(
    ("changed", "family", "rule"),
    [
        ({}, PILOT, "repeated_finetune"),
        ({"purpose": "pretrain", "runs_in_horizon": 2.0}, PILOT, "ongoing_pretraining"),
        ({"architecture": "novel"}, "gpu", "fast_moving_research"),
        ({"architecture": "moderate_custom", "months_since_architecture_change": 1.9}, "gpu", "fast_moving_research"),
        ({"custom_cuda": "heavy"}, "gpu", "heavy_custom_cuda"),
        ({"neuron_supported": "no"}, "gpu", "heavy_custom_cuda"),
        ({"runs_in_horizon": 1.0}, "gpu", "one_off_run"),
        ({"need_within_days": 10}, "trainium", "gpu_constrained"),
        ({"need_within_days": 10, "architecture": "novel"}, "trainium", "gpu_constrained"),
        ({"runs_in_horizon": 6.0, "team_is_cuda_native": "yes", "payback_months": 13.0}, "gpu", "cuda_native_team"),
        (
            {"runs_in_horizon": 6.0, "months_since_architecture_change": 6.0, "monthly_cost_trend_usd": 0.01},
            PILOT,
            "stable_and_growing",
        ),
        # Needed in three days, which neither can do; in 30, which both can.
        ({"need_within_days": 3}, PILOT, "repeated_finetune"),
        ({"need_within_days": 30}, PILOT, "repeated_finetune"),
    ],
)
def test_each_scenario_recommends_as_the_facts_do(changed: dict[str, Any], family: str, rule: str) -> None:
    """What speaks for Trainium recommends a pilot: to move needs a proven comparison (design 5)."""
    found = recommend(KNOWN | changed)
    assert (found.recommendation, found.decided_by) == (family, rule)


def test_no_matching_rule_recommends_a_pilot() -> None:
    """Six runs where seven pay back, no growth, no team of CUDA: none of the eight."""
    assert recommend(KNOWN | {"runs_in_horizon": 6.0}) == Decision(
        PILOT, "nothing", "no rule applies to the known inputs"
    )


@pytest.mark.parametrize(
    ("unknown", "decided_by"),
    [
        # Heavy CUDA would be a stop, so Trainium cannot be recommended; that GPUs are short does not change it.
        ({"custom_cuda": None}, MISSING),
        ({"custom_cuda": None, "need_within_days": 10}, MISSING),
        # No is no, whatever the CUDA.
        ({"custom_cuda": None, "neuron_supported": "no"}, "heavy_custom_cuda"),
        # Scenario 1 does not hold on unknown runs; 3 comes after it and recommended otherwise.
        ({"break_even_runs": None, "months_since_architecture_change": 1.0}, MISSING),
        # What is unknown after the rule that holds changes nothing.
        ({"team_is_cuda_native": None, "monthly_cost_trend_usd": None}, "repeated_finetune"),
        # Nothing is needed by a day, so lead times need not be known.
        ({"baseline_lead_days": None, "candidate_lead_days": None}, "repeated_finetune"),
        ({"baseline_lead_days": None, "need_within_days": 10, "architecture": "novel"}, MISSING),
    ],
)
def test_a_missing_input_recommends_a_pilot_where_it_could_change_the_answer(
    unknown: dict[str, Any], decided_by: str
) -> None:
    found = recommend(KNOWN | unknown)
    assert found.decided_by == decided_by
    assert found.recommendation == ("gpu" if decided_by == "heavy_custom_cuda" else PILOT)


@pytest.mark.parametrize(
    ("measured", "changed", "recommendation"),
    [
        # Novel recommended to GPU, but it is proven and the seventh run pays it back.
        (PROVEN, {"architecture": "novel"}, "trainium"),
        (PROVEN, {"runs_in_horizon": 6.0}, "gpu"),
        # Paid back by runs, yet upkeep and falling prices take more.
        ((PROVEN[0], -1.0), {}, "gpu"),
        # What upkeep and falling prices take depends on how often it runs.
        ((PROVEN[0], None), {"architecture": "novel"}, PILOT),
        (PROVEN, {"runs_in_horizon": None}, PILOT),
        (DISPROVEN, {}, "gpu"),
        ((pair("not comparable", "quality missed"), None), {}, PILOT),
        ((pair("inconclusive", "", 0.1, -0.2, 0.3, 54), None), {}, PILOT),
        # One success shows no variance: nothing is known of how many runs would decide.
        ((pair("inconclusive", "", 0.1, -270.0, 0.995, None), None), {}, PILOT),
        # A tie within ±5 points goes to what can be had sooner: in 5 days, not 20.
        (TIE, {}, "trainium"),
        (TIE, {"baseline_lead_days": 0.0}, "gpu"),
        (TIE, {"baseline_lead_days": 5.0}, "either"),
        # Two runs a side prove nothing: the scenario stands, unless it speaks for what they measured as more expensive.
        ((pair("indicative", "2 runs", 0.4), None), {}, PILOT),
        ((pair("indicative", "2 runs", -0.4), None), {}, PILOT),
        ((pair("indicative", "2 runs", -0.4), None), {"architecture": "novel"}, "gpu"),
        ((pair("indicative", "2 runs", -0.4), None), {"need_within_days": 10}, PILOT),
        # A stop comes before the arithmetic, and so does what alone can be had in time where it may be cheaper.
        (PROVEN, {"custom_cuda": "heavy"}, "gpu"),
        (TIE, {"need_within_days": 10}, "trainium"),
        (DISPROVEN, {"need_within_days": 10}, "gpu"),
        # Lead times are not known, and Trainium might be the only one in time; it would be more expensive.
        (DISPROVEN, {"need_within_days": 10, "baseline_lead_days": None}, "gpu"),
    ],
)
def test_arithmetic_overrides_scenarios_and_availability_breaks_ties(
    measured: Measured, changed: dict[str, Any], recommendation: str
) -> None:
    assert recommend(KNOWN | changed, measured).recommendation == recommendation


def test_what_can_be_had_at_once_is_had_in_0_days() -> None:
    found = recommend(KNOWN | {"baseline_lead_days": 0.0}, TIE)
    assert found.reason.endswith(": a tie, and gpu can be had in 0 days")


def test_a_port_that_no_saving_pays_back_needs_no_pilot() -> None:
    """16,000 against two runs of 1,000: a saving of 800 % would be needed. Everything else is unknown."""
    inputs = dict.fromkeys(KNOWN) | {
        "port_cost_usd": 16_000.0,
        "runs_in_horizon": 2.0,
        "baseline_run_cost_usd": 1_000.0,
    }
    stops = [weigh(rule, inputs) for rule in RULES if rule.kind == "hard_stop"]
    assert {found.holds for found in stops} == {None}
    unpaid = repayment(inputs)
    assert unpaid is not None
    decision = decide([*stops, unpaid, arithmetic(None, None, inputs)], SITUATIONS)
    assert (decision.recommendation, decision.decided_by) == ("gpu", "repayment")
    assert decision.reason == (
        "repayment: the port costs 16,000.00, the 2.0 GPU runs of the horizon 2,000.00: no saving pays it back"
    )
    # Sixteen runs cost as much as the port, so a saving of all of it would pay it back.
    assert repayment(inputs | {"runs_in_horizon": 16.0}) is None
    assert repayment(inputs | {"baseline_run_cost_usd": None}) is None


def test_nothing_moves_by_a_port_of_which_the_bill_lacks_a_run() -> None:
    """What the port cost is unknown, so whether the proven saving pays it back is too."""
    lacks = "no bill in USD has the pilot run spike"
    found = arithmetic(pair("proven", saving=0.3, low=0.2, high=0.4), None, KNOWN | {"port_cost_usd": None}, [lacks])
    assert (found.recommendation, found.holds) == (PILOT, True)
    assert found.explanation.endswith(f"the cost of the port is unknown: {lacks}")


def test_proven_without_a_stated_port_states_what_is_missing() -> None:
    found = recommend(KNOWN | {"port_cost_usd": None, "break_even_runs": None}, PROVEN)
    assert (found.recommendation, found.missing) == ("trainium", ("port_cost_usd",))


VALUES = {
    **{name: st.sampled_from([None, 0.0, 1.0, 5.0, 20.0]) for name in KNOWN},
    "purpose": st.sampled_from([None, "finetune", "pretrain"]),
    "architecture": st.sampled_from([None, "mainstream", "moderate_custom", "novel"]),
    "custom_cuda": st.sampled_from([None, "none", "some", "heavy"]),
    "neuron_supported": st.sampled_from([None, "yes", "no"]),
    "team_is_cuda_native": st.sampled_from([None, "yes", "no"]),
    "need_within_days": st.sampled_from([inf, 3.0, 10.0]),
    "settling_months": st.just(2),
    "stable_months": st.just(6),
}


@given(st.fixed_dictionaries(VALUES), st.data())
def test_a_missing_input_found_later_never_changes_a_decision(inputs: dict[str, Any], data: st.DataObject) -> None:
    """What is answered while inputs are unknown is the answer whatever they turn out to be."""
    before = recommend(inputs)
    complete = {
        name: value if value is not None else data.draw(VALUES[name].filter(lambda drawn: drawn is not None))
        for name, value in inputs.items()
    }
    if before.decided_by not in ("missing inputs", "nothing"):
        assert recommend(complete).recommendation == before.recommendation


@given(st.fixed_dictionaries(VALUES))
def test_a_rule_is_unknown_only_for_what_it_lacks(inputs: dict[str, Any]) -> None:
    for rule in RULES:
        found: Finding = weigh(rule, inputs)
        assert (found.holds is None) == bool(found.missing)
        assert all(inputs[name] is None for name in found.missing)
