"""The pilot of a workload that no measurement decides: what it measures, its runs, their cost and what decides."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date

import polars as pl

from pipelines.analysis.comparison import SIDES
from pipelines.analysis.estimate import Sample, runs_needed
from pipelines.analysis.matched import Run, Side, one_side
from pipelines.analysis.recommendation import PILOT
from pipelines.analysis.verdict import RUN_FLOOR, spent
from pipelines.transforms import Row, number
from pipelines.transforms.port_case import BASIS, CURRENCY
from pipelines.transforms.price_book import Prices, price_on
from pipelines.transforms.workload_case import FAMILIES, WorkloadCase


def pilot_plan(case: WorkloadCase, compared: Sequence[Run], prices: Prices, offers: pl.DataFrame) -> Row:
    """The columns of mart_portfolio on the pilot; none where a measurement or a hard stop decides.

    `compared` are the runs of all workloads (run_pair), `prices` those in force, `offers` stg_aws__capacity_offer.
    """
    kinds = {found.rule: found.kind for found in case.findings}
    if case.decision.recommendation != PILOT and kinds.get(case.decision.decided_by) != "scenario":
        return {}
    key, pair = (case.workload_id, case.currency), case.pair or {}
    runs = [run for run in compared if (run["workload_id"], run["billing_currency"]) == key]
    named = [pair.get(f"{side}_instance_type") for side in SIDES]
    types = [name or _usual(runs, offers, family) for name, family in zip(named, FAMILIES, strict=True)]
    sides = [one_side([run for run in runs if run["instance_type"] == name]) for name in types]
    samples = [side.sample(BASIS) if side else None for side in sides]
    verdict = pair.get("verdict", "")
    gpu, trainium = map(_per_success, sides)
    (gpu_usd, gpu_evidence), (usd, evidence) = cost_of_a_run(gpu, trainium), cost_of_a_run(trainium, gpu)
    regions = {case.declared["region_id"]} if case.declared["region_id"] else {run["region_id"] for run in runs}
    price = _price(types[1], regions, prices, offers) if case.currency == CURRENCY else None
    saving = deciding_saving(number(case.inputs["port_cost_usd"]), number(case.inputs["runs_in_horizon"]), gpu_usd)
    # GPU runs may be listed, but what was seen before the pilot was registered proves nothing.
    is_anew = verdict == "not comparable" or (pair and pair.get("registration") is None)
    anew = SIDES if verdict == "supported" else SIDES[1:] if is_anew else ()
    *counts, basis = runs_to_do(samples[0], samples[1], saving, anew)
    measure = next((side.measure for side in sides if side), "cost_to_target").replace("_", " ")
    to_measure = f"{measure} and the final quality of each run, with the quality margin registered first"
    if verdict == "not comparable":
        to_measure += f"; runs that may be compared, for now: {pair['verdict_reason']}"
    wins = "the low end of the saving's interval is above zero (and, once a port is declared, pays it back)"
    if saving is not None:
        wins = f"the low end of the saving's interval is above {saving:.1%}, which pays the port back in its horizon"
    return {
        **{f"pilot_{side}_instance_type": name for side, name in zip(SIDES, types, strict=True)},
        **{f"pilot_{side}_run_count": count for side, count in zip(SIDES, counts, strict=True)},
        "run_count_basis": basis,
        "baseline_cost_per_run_usd": gpu_usd,
        "candidate_cost_per_run_usd": usd,
        "cost_per_run_evidence": f"GPU {gpu_evidence}, Trainium {evidence}",
        "candidate_hours_per_run": usd / price if price and usd and not sides[1] else None,
        "pilot_run_cost_usd": None if gpu_usd is None or usd is None else counts[0] * gpu_usd + counts[1] * usd,
        "deciding_saving_ratio": saving,
        "to_measure": to_measure,
        "deciding_result": f"Trainium if {wins}; GPU if its high end is below that, or quality is not within the "
        "margin",
    }


def _usual(runs: Sequence[Run], offers: pl.DataFrame, family: str) -> str | None:
    """The machine most of its runs were on, else the one that can be had soonest."""
    own = Counter(run["instance_type"] for run in runs if run["accelerator_family"] == family)
    if own:
        return max(own, key=lambda name: (own[name], name))
    offered = offers.filter(accelerator_family=family).sort("lead_days", "instance_type", nulls_last=True)
    return offered["instance_type"][0] if offered.height else None


def _per_success(side: Side | None) -> float | None:
    """Cost of a run that succeeds, those that failed on the way to it included."""
    whole = side and spent(side.runs, BASIS)
    return None if side is None or whole is None else whole / len(side.succeeded)


def _price(
    instance_type: str | None, regions: Collection[str | None], prices: Prices, offers: pl.DataFrame
) -> float | None:
    """USD of an instance-hour: the least offered, else on demand in the one region of the workload."""
    if instance_type is None:
        return None
    offered = offers.filter(instance_type=instance_type)["price_per_hour_usd"].drop_nulls().min()
    if offered is not None or len(regions) != 1:
        return number(offered)
    machine = {"instance_type": instance_type.removeprefix("ml."), "billing_currency": CURRENCY}
    return price_on(prices, {**machine, "region_id": next(iter(regions))}, date.max)


def runs_to_do(
    baseline: Sample | None, candidate: Sample | None, deciding: float | None, anew: Collection[str] = ()
) -> tuple[int, int, str]:
    """Runs GPU and Trainium still lack, three a side at the least, and how that is known: from the costs of the runs
    there are and the saving that decides, which is any where no port is declared. The sides `anew` ("baseline",
    "candidate") have runs that may claim nothing; where none is lacking and nothing is decided, both are."""
    wanted, basis = _wanted(baseline, candidate, deciding or 0.0)
    wanted = max(RUN_FLOOR, wanted)
    sides = {"baseline": baseline, "candidate": candidate}
    made = [0 if side is None or name in anew else side.costs.size for name, side in sides.items()]
    lacking = [max(0, wanted - count) for count in made]
    gpu, trainium = lacking if any(lacking) else (wanted, wanted)
    return gpu, trainium, basis


def _wanted(baseline: Sample | None, candidate: Sample | None, deciding: float) -> tuple[int, str]:
    if baseline and candidate and (found := runs_needed(baseline, candidate, deciding)) is not None:
        fewest = "for an 80% chance of a decision, or for an interval of ±5 points if that takes fewer"
        return found, f"{fewest}; at the costs measured so far"
    for name, side in (("GPU", baseline), ("Trainium", candidate)):
        if side and (found := runs_needed(side, side)) is not None:
            return found, f"for an interval of ±5 points, both sides varying as the {name} runs do"
    return RUN_FLOOR, f"{RUN_FLOOR} a side are the minimum; they then show how many more are needed"


def cost_of_a_run(own: float | None, other: float | None) -> tuple[float | None, str]:
    """USD of a run on one side, and its evidence; without a run, at most the other side's cost, since more has lost."""
    if own is not None:
        return own, "measured"
    return other, "unknown" if other is None else "at most what the other side costs"


def deciding_saving(port_cost: float | None, runs: float | None, baseline_cost: float | None) -> float | None:
    """The share of a GPU run's cost that Trainium must save for the port to be paid back by `runs`."""
    if port_cost is None or not runs or not baseline_cost:
        return None
    return port_cost / runs / baseline_cost
