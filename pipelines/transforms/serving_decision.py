"""The recommendation for each served model, from mart_serving_comparison: rows of mart_portfolio."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipelines.analysis.crossover import UNDECIDED
from pipelines.analysis.recommendation import ARITHMETIC, PILOT, Finding, rules_of, weigh
from pipelines.transforms import Frames, Row

INPUTS = ("mart_serving_comparison", "ref_bedrock_model", "ref_recommendation_rule")
OPTIONS = ("gpu", "trainium", "inferentia", "bedrock")
_PILOT_WEEKS = 3


def serving_rows(table: Frames) -> Iterator[Row]:
    """Every served model, by currency; `table` has the frames of INPUTS."""
    weights = dict(table["ref_bedrock_model"].select("model", "weights").iter_rows())
    rules = [rule for rule in rules_of(table["ref_recommendation_rule"].to_dicts()) if rule.kind == "serving_stop"]
    situations = {rule.name: rule.situation for rule in rules}
    compared = table["mart_serving_comparison"].sort("model", "billing_currency").to_dicts()
    for (model, currency), group in groupby(compared, key=lambda row: (row["model"], row["billing_currency"])):
        every = list(group)
        ways = {_way(row): row for row in every}
        # Of a model that is served in several ways, the one that costs most.
        usual = max(ways.values(), key=lambda row: row["baseline_cost_per_month_usd"] or 0)
        own = [row for row in every if _way(row) == _way(usual)]
        inputs = {"weights": weights.get(model) if usual["baseline_platform"] == "bedrock" else "open"}
        stops = [weigh(rule, inputs) for rule in rules]
        spent = [row["baseline_cost_per_month_usd"] for row in ways.values()]
        yield {
            "activity": "serving",
            "workload_id": model,
            "billing_currency": currency,
            "monthly_cost_usd": None if None in spent else sum(spent),
            "rule_findings": " | ".join(f"{found.rule}: {found.explanation}" for found in stops),
            **{f"{family}_monthly_cost_usd": _cheapest_of(own, family) for family in OPTIONS},
            **_decided(own, next((found for found in stops if found.holds), None), situations),
        }


def _way(row: Row) -> tuple[Any, ...]:
    return row["baseline_platform"], row["baseline_instance_type"], row["baseline_tier"]


def _cheapest_of(own: Sequence[Row], family: str) -> float | None:
    """What the traffic costs a month in this family, today or as compared; None where nothing shows it."""
    costs = [own[0]["baseline_cost_per_month_usd"]] if own[0]["baseline_family"] == family else []
    costs += [row["candidate_cost_per_month_usd"] for row in own if row["candidate_family"] == family]
    return min((usd for usd in costs if usd is not None), default=None)


def _decided(own: Sequence[Row], stop: Finding | None, situations: Mapping[str, str]) -> Row:
    """Hard stops, then the cheapest way that is shown, unless a pilot may show a cheaper one."""
    today = own[0]["baseline_cost_per_month_usd"]
    moves = [row for row in own if row["recommended_family"] and row["saving_ratio"] and row["saving_ratio"] > 0]
    may_win = [row for row in own if row["verdict"] == UNDECIDED]
    best = min(moves or may_win or own, key=_cost)
    is_open = not stop and bool(may_win) and (not moves or _cost(min(may_win, key=_cost)) < _cost(best))
    if is_open:
        best = min(may_win, key=_cost)
    recommendation = PILOT if is_open else stop.recommendation if stop else best["recommended_family"]
    cost = best["candidate_cost_per_month_usd"]
    reason = f"{_named(best)}: {best['verdict_reason']}" if best["candidate_platform"] else best["verdict_reason"]
    row = {
        "recommendation": recommendation,
        "decided_by": stop.rule if stop else "missing inputs" if is_open else ARITHMETIC,
        "recommendation_reason": situations[stop.rule] if stop else reason,
        "verdict": "not compared" if best["candidate_platform"] is None else best["verdict"],
        **{name: best[name] for name in ("saving_ratio", "saving_low_ratio", "saving_high_ratio")},
        "monthly_at_stake_usd": today,
        "at_stake_evidence": None if today is None else "at most all of it",
        "missing_evidence": best["missing_evidence"],
    }
    if cost is not None and today is not None:
        row["monthly_at_stake_usd"] = today - cost
        row["at_stake_evidence"] = "planned" if best["candidate_source"] else "measured"
    return row | _pilot(best) if is_open else row


def _cost(row: Row) -> float:
    usd = row["candidate_cost_per_month_usd"]
    return float("inf") if usd is None else usd


def _named(row: Row) -> str:
    """The candidate in words."""
    kind = row["candidate_instance_type"] or str(row["candidate_platform"])
    return kind if row["candidate_model"] in (None, row["model"]) else f"{row['candidate_model']} on {kind}"


def _pilot(row: Row) -> Row:
    """What a pilot of this candidate measures, costs and decides."""
    if row["candidate_platform"] is None:
        return {}
    hourly, name = row["candidate_price_per_hour_usd"], _named(row)
    measured = f"quality on the same requests, and tokens per second while the latency target holds, on {name}"
    return {
        "pilot_baseline_instance_type": row["baseline_instance_type"],
        "pilot_candidate_instance_type": row["candidate_instance_type"],
        "pilot_run_cost_usd": None if hourly is None else hourly * 24 * 7 * _PILOT_WEEKS,
        "to_measure": f"{measured}, over {_PILOT_WEEKS} weeks of this traffic",
        "deciding_result": f"{name} if quality and latency hold and the low end of the saving's interval is above "
        "zero; what serves it today if its high end is below zero",
    }
