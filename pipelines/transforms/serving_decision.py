"""The recommendation for each served model, from mart_serving_comparison: rows of mart_portfolio."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import ceil, inf
from typing import Any

import polars as pl
from polars import selectors

from pipelines.analysis.crossover import MONTH_HOURS, UNDECIDED
from pipelines.analysis.recommendation import ARITHMETIC, PILOT, Finding, rules_of, weigh
from pipelines.base.groups import grouped
from pipelines.transforms import Frames, Row

INPUTS = ("mart_serving_comparison", "ref_bedrock_model", "ref_recommendation_rule")
OPTIONS = ("gpu", "trainium", "inferentia", "bedrock")
_PILOT_WEEKS = 3
_CANDIDATE = ("candidate_model", "candidate_platform", "candidate_instance_type", "candidate_source")
_SAVED = ("saving_ratio", "saving_low_ratio", "saving_high_ratio")


def serving_rows(table: Frames) -> Iterator[Row]:
    """Every served model, by currency; `table` has the frames of INPUTS."""
    weights = dict(table["ref_bedrock_model"].select("model", "weights").iter_rows())
    rules = [rule for rule in rules_of(table["ref_recommendation_rule"].to_dicts()) if rule.kind == "serving_stop"]
    situations = {rule.name: rule.situation for rule in rules}
    sums = table["mart_serving_comparison"].with_columns(selectors.decimal().cast(pl.Float64))
    compared = sums.sort("model", "billing_currency").to_dicts()
    for (model, currency), group in groupby(compared, key=lambda row: (row["model"], row["billing_currency"])):
        ways = grouped(group, _way)
        # Of a model that is served in several ways, the one that costs most decides, as one of unknown cost may; the
        # figures are of all of them.
        own, *others = sorted(ways.values(), key=lambda rows: -inf if _today(rows) is None else -(_today(rows) or 0))
        usual = own[0]
        inputs = {"weights": weights.get(model) if usual["baseline_platform"] == "bedrock" else "open"}
        stops = [weigh(rule, inputs) for rule in rules]
        yield {
            "activity": "serving",
            "workload_id": model,
            "billing_currency": currency,
            "monthly_cost_usd": _sum(_today(rows) for rows in (own, *others)),
            "rule_findings": " | ".join(f"{found.rule}: {found.explanation}" for found in stops),
            **{f"{family}_monthly_cost_usd": _cheapest((own, *others), family) for family in OPTIONS},
            **_decided(own, others, next((found for found in stops if found.holds), None), situations),
        }


def _way(row: Row) -> tuple[Any, ...]:
    return row["baseline_platform"], row["baseline_instance_type"], row["baseline_tier"]


def _today(rows: Sequence[Row]) -> float | None:
    """What the traffic that is served in this way costs a month."""
    return rows[0]["baseline_cost_per_month_usd"]


def _sum(costs: Iterable[float | None]) -> float | None:
    """The sum; None where a part is unknown."""
    known = list(costs)
    return None if None in known else sum(usd for usd in known if usd is not None)


def _cheapest_of(own: Sequence[Row], family: str) -> float | None:
    """What the traffic costs a month in this family, today or as compared; None where nothing shows it."""
    costs = [own[0]["baseline_cost_per_month_usd"]] if own[0]["baseline_family"] == family else []
    costs += [row["candidate_cost_per_month_usd"] for row in own if row["candidate_family"] == family]
    return min((usd for usd in costs if usd is not None), default=None)


def _cheapest(ways: Sequence[Sequence[Row]], family: str) -> float | None:
    """What the traffic of all ways costs a month in this family: each on its own, or all on one kind of capacity."""
    kinds = {tuple(row[name] for name in _CANDIDATE): row for row in chain(*ways) if row["candidate_family"] == family}
    apart = _sum(_cheapest_of(rows, family) for rows in ways)
    costs = [apart, *(_together(ways, row) for row in kinds.values() if len(ways) > 1)]
    return min((usd for usd in costs if usd is not None), default=None)


def _together(ways: Sequence[Sequence[Row]], kind: Row) -> float | None:
    """What all ways cost a month on this one capacity, with replicas for the sum of their peaks.

    What is served by it today stays as it is: others first fill its room. None where a part is unknown.
    """
    today, stays, load, upkeep = 0.0, 0.0, 0.0, 0.0
    hourly = kind["candidate_price_per_hour_usd"]
    for rows in ways:
        row = _moved(rows, kind)
        cost, peak = row["candidate_cost_per_month_usd"], row["peak_tokens_per_second"] or 0.0
        is_moved = any(row is one for one in rows)
        speed = (row if is_moved else kind)["candidate_tokens_per_second"]
        if cost is None or hourly is None or not speed:
            return None
        load += peak / speed
        if is_moved:
            upkeep = max(upkeep, cost - row["replica_count"] * hourly * MONTH_HOURS)
        else:
            today, stays = today + cost, stays + peak / speed
    more = max(_replicas(load), 1) - (max(_replicas(stays), 1) if today else 0)
    return today + more * hourly * MONTH_HOURS + upkeep


def _replicas(load: float) -> int:
    return ceil(load * (1 - 1e-12))


def _decided(
    own: Sequence[Row], others: Sequence[Sequence[Row]], stop: Finding | None, situations: Mapping[str, str]
) -> Row:
    """Hard stops, then the cheapest way that is shown, unless a pilot may show a cheaper one."""
    moves = [row for row in own if row["recommended_family"] and row["saving_ratio"] and row["saving_ratio"] > 0]
    may_win = [row for row in own if row["verdict"] == UNDECIDED]
    best = min(moves or may_win or own, key=_cost)
    is_open = not stop and bool(may_win) and (not moves or _cost(min(may_win, key=_cost)) < _cost(best))
    if is_open:
        best = min(may_win, key=_cost)
    recommendation = PILOT if is_open else stop.recommendation if stop else best["recommended_family"]
    reason = f"{_named(best)}: {best['verdict_reason']}" if best["candidate_platform"] else best["verdict_reason"]
    if others:
        reason = f"of what {best['baseline_instance_type'] or best['baseline_platform']} serves, {reason}"
    row = {
        "recommendation": recommendation,
        "decided_by": stop.rule if stop else "missing inputs" if is_open else ARITHMETIC,
        "recommendation_reason": situations[stop.rule] if stop else reason,
        "verdict": "not compared" if best["candidate_platform"] is None else best["verdict"],
        **_saved(best, others),
        "missing_evidence": best["missing_evidence"],
    }
    return row | _pilot(best) if is_open else row


def _saved(best: Row, others: Sequence[Sequence[Row]]) -> Row:
    """What serving all traffic as the `best` candidate saves of what it costs today; at most all where one way's part
    is unknown. The ends of several ways' intervals add up to an interval that is wide enough."""
    moved = [best, *(_moved(rows, best) for rows in others)]
    today = _sum(row["baseline_cost_per_month_usd"] for row in moved)
    cost = _sum(row["candidate_cost_per_month_usd"] for row in moved)
    together = _together([[best], *others], best) if others else None
    # What replicas for all ways together cost less than for each on its own.
    shared = max(cost - together, 0.0) if cost is not None and together is not None else 0.0
    found: Row = {}
    for name in _SAVED:
        found[name] = best[name]
        if others:
            parts = [(row[name], row["baseline_cost_per_month_usd"]) for row in moved]
            saved = _sum(None if ratio is None or usd is None else ratio * usd for ratio, usd in parts)
            found[name] = (saved + shared) / today if saved is not None and today else None
    if cost is None or today is None:
        evidence = None if today is None else "at most all of it"
        return found | {"monthly_at_stake_usd": today, "at_stake_evidence": evidence}
    is_planned = any(row["candidate_source"] for row in moved)
    evidence = "planned" if is_planned else "measured"
    return found | {"monthly_at_stake_usd": today - cost + shared, "at_stake_evidence": evidence}


def _moved(rows: Sequence[Row], best: Row) -> Row:
    """The row of a way for the `best` candidate; what is served so today stays as it is."""
    for row in rows:
        if all(row[name] == best[name] for name in _CANDIDATE):
            return row
    kept = best["candidate_model"], best["candidate_platform"], best["candidate_instance_type"]
    stays = kept == (rows[0]["model"], *_way(rows[0])[:2])
    cost, saved = (_today(rows), 0.0) if stays else (None, None)
    return rows[0] | dict.fromkeys(_SAVED, saved) | {"candidate_cost_per_month_usd": cost, "candidate_source": None}


def _cost(row: Row) -> float:
    usd = row["candidate_cost_per_month_usd"]
    return float("inf") if usd is None else usd


def _named(row: Row) -> str:
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
