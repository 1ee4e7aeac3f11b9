"""The runs of a baseline and a candidate machine that share a workload and a currency, with what makes them alike."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby, product
from typing import Any

import polars as pl

from pipelines.analysis.estimate import joined
from pipelines.analysis.matched import Run
from pipelines.transforms import run_unit
from pipelines.transforms.run_unit import run_units

# The accelerator families that are compared: baseline, candidate. A third family is one more pair here.
FAMILY_PAIRS = (("gpu", "trainium"),)
PAIR_KEY = (
    "workload_id", "baseline_family", "baseline_instance_type", "candidate_family", "candidate_instance_type",
    "billing_currency",
)  # fmt: skip
# What makes runs alike, whatever workload they declare (design 5).
FIELDS = ("model", "dataset", "seq_len", "global_batch_samples", "precision", "target")
# Idle seconds before a machine joins its run that are not its boot, and the least share of the run's cost they are.
_JOIN_GRACE, _LEAST_SHARE = timedelta(minutes=5), 0.05
INPUTS = (
    *run_unit.INPUTS, "dim_run_ancestor", "stg_tracker__run", "stg_tracker__resource", "stg_tracker__evaluation",
    "fct_ledger_piece",
)  # fmt: skip
# Hours in which a machine of a run stood idle.
QUERIES = run_unit.QUERIES | {
    "fct_ledger_piece": """
        select resource_id, hour_started_at, sum(effective_cost_usd) as idle_usd
        from fct_ledger_piece
        where bucket = 'idle' and piece_kind = 'instance_hour'
            and resource_id in (select resource_id from stg_tracker__resource)
        group by all"""
}


def pairs_of(runs: Sequence[Run]) -> Iterator[tuple[dict[str, str], list[Run], list[Run]]]:
    """The runs of each pair of instance types that share workload and currency: key, baseline and candidate."""
    keys = ("workload_id", "billing_currency", "accelerator_family", "instance_type")
    sides: dict[tuple[str, ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: [run[key] or "" for key in (*keys, "run_id")]):
        sides.setdefault(tuple(run[key] for key in keys), []).append(run)
    # A side on which nothing completed has no cost of completing it.
    completed = [side for side in sides if any(run["status"] == "completed" for run in sides[side])]
    for (workload, currency), group in groupby(completed, key=lambda side: side[:2]):
        by_family: dict[str, list[tuple[str, ...]]] = {}
        for side in group:
            by_family.setdefault(side[2], []).append(side)
        for families in FAMILY_PAIRS:
            for baseline, candidate in product(*(by_family.get(family, []) for family in families)):
                key = (workload, *baseline[2:], *candidate[2:], currency)
                yield dict(zip(PAIR_KEY, key, strict=True)), sides[baseline], sides[candidate]


def runs_of(table: Mapping[str, pl.DataFrame]) -> list[Run]:
    """Every run that may be compared, as analysis/matched.py takes it: costs, what makes it alike, warnings.

    `table` has the frames of INPUTS by name.
    """
    found = run_units(table["fct_run_cost"], table["fct_interval_cost"], table["dim_run"])
    described = {row["run_id"]: row for row in table["dim_run"].iter_rows(named=True)}
    bases = dict(table["stg_tracker__run"].select("run_id", "base_checkpoint_id").iter_rows())
    resource = table["stg_tracker__resource"].filter(~pl.col("is_any_machine"))
    stays, on_machine = _by(resource, "run_id"), _by(resource, "resource_id")
    evaluations = _by(table["stg_tracker__evaluation"].sort("evaluated_at", "step", nulls_last=True), "run_id")
    idle = _by(table["fct_ledger_piece"], "resource_id")
    for run_id, run in found.items():
        about, own = described[run_id], evaluations.get(run_id, [])
        run |= {name: about[name] for name in FIELDS if name != "target"}
        run["target"] = _target(about)
        run["target_words"] = target_words(run["target"])
        run["machines"] = sorted({stay["resource_id"] for stay in stays.get(run_id, [])})
        run["base_checkpoint_id"] = bases.get(run_id)
        run["target_split"] = _split(run["target"], own)
        run["final"] = {(row["metric"], row["split"]): row["value"] for row in own}
        run["evaluations"] = frozenset((row["step"], row["metric"], row["split"], row["value"]) for row in own)
        run["tokens_per_dataset"] = _tokens_per_dataset(about)
        run["warnings"] = [
            *_purposes(run),
            *_partly_used(run, stays.get(run_id, []), on_machine),
            *_joined_late(run, stays.get(run_id, []), on_machine, idle),
        ]
    _add_jobs(found, table["dim_run_ancestor"])
    return list(found.values())


def _by(frame: pl.DataFrame, column: str) -> dict[str, list[dict[str, Any]]]:
    """The rows by a column, each group in the order of the frame."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row[column], []).append(row)
    return found


def target_words(target: tuple[str, str, float] | None) -> str:
    """A target as people write it."""
    return "no target" if target is None else f"{target[0]} {'>=' if target[1] == 'max' else '<='} {target[2]:g}"


def _target(about: Mapping[str, Any]) -> tuple[str, str, float] | None:
    target = about["target_metric"], about["target_direction"], about["target_value"]
    return None if None in target else target


def _split(target: tuple[str, str, float] | None, evaluations: list[dict[str, Any]]) -> str | None:
    """The split of the first evaluation that met the target; None where none did."""
    for row in evaluations:
        value = row["value"] if target and row["metric"] == target[0] else None
        if value is not None and target and (value >= target[2] if target[1] == "max" else value <= target[2]):
            return row["split"]
    return None


def _tokens_per_dataset(about: Mapping[str, Any]) -> float | None:
    """Tokens of a recorded epoch over those of the dataset: 1 where an epoch is the dataset."""
    needed = about["epoch_tokens_seen_count"], about["epoch_completed_count"], about["dataset_tokens"]
    if about["epoch_unit"] != "dataset_pass" or about["tokens_unit"] != "job" or not all(needed):
        return None
    return float(needed[0]) / float(needed[1]) / float(needed[2])


def _purposes(run: Run) -> Iterator[str]:
    """What weakens a comparison of the run's side, whatever its figures are."""
    if run["purpose"] == "compile_only":
        did = "trained" if run["epoch_completed_count"] or run["tokens_seen_count"] or run["evaluations"] else None
        yield (
            f"run {run['run_id']} is labeled compile_only but {did}: it counts as failed"
            if did
            else f"no run links what compile run {run['run_id']} made: it counts as failed"
        )
    if run["status"] == "unknown" and run["target_duration_ms"] is None:
        yield f"run {run['run_id']} has no recorded end: it counts as failed"


def _partly_used(
    run: Run, stays: list[dict[str, Any]], on_machine: Mapping[str, list[dict[str, Any]]]
) -> Iterator[str]:
    for stay in stays:
        used, whole = stay["accelerators_used"], stay["accelerator_count"]
        if used and whole and used < whole and not _shared(run, stay["resource_id"], on_machine):
            yield (
                f"run {run['run_id']} used {used} of the {whole} accelerators of {stay['resource_id']} and no run used "
                "the others: their cost is idle and not compared"
            )
            return


def _joined_late(
    run: Run,
    stays: list[dict[str, Any]],
    on_machine: Mapping[str, list[dict[str, Any]]],
    idle: Mapping[str, list[dict[str, Any]]],
) -> Iterator[str]:
    begun = run["started_at"]
    joins: dict[str, Any] = {}
    for stay in stays:
        joins[stay["resource_id"]] = min(stay["joined_at"], joins.get(stay["resource_id"], stay["joined_at"]))
    for machine, at in joins.items():
        if at - begun <= _JOIN_GRACE or _shared(run, machine, on_machine):
            continue
        hours = [hour for hour in idle.get(machine, ()) if begun - timedelta(hours=1) < hour["hour_started_at"] <= at]
        usd = sum(float(hour["idle_usd"] or 0) for hour in hours)
        if usd > _LEAST_SHARE * float(run["costs"]["effective"][0] or 0):
            yield (
                f"{machine} joined run {run['run_id']} {(at - begun).total_seconds() / 60:.0f} minutes after its "
                f"start, and ${usd:,.2f} of idle time before that are not compared"
            )
            return


def _shared(run: Run, machine: str, on_machine: Mapping[str, list[dict[str, Any]]]) -> bool:
    return any(
        stay["run_id"] != run["run_id"] and stay["joined_at"] < run["ended_at"] and stay["left_at"] > run["started_at"]
        for stay in on_machine[machine]
    )


def _add_jobs(found: dict[str, dict[str, Any]], dim_run_ancestor: pl.DataFrame) -> None:
    """Name the job of each run: equal evaluations on shared machines, and runs resumed from one another, are one."""
    parents = dim_run_ancestor.filter(generation_count=1).select("run_id", "ancestor_run_id")
    parent = {
        run_id: ancestor
        for run_id, ancestor in parents.iter_rows()
        if run_id in found and ancestor in found and found[run_id]["base_checkpoint_id"]
    }
    keys = []
    for run_id, run in found.items():
        side = run["workload_id"], run["instance_type"], run["billing_currency"]
        own: list[Any] = [(*side, run_id)]
        if run["evaluations"]:
            own += [(*side, machine, run["evaluations"]) for machine in run["machines"]]
        resumed = found.get(parent.get(run_id, ""), {})
        if resumed and side == (resumed["workload_id"], resumed["instance_type"], resumed["billing_currency"]):
            own.append((*side, resumed["run_id"]))
            run["resumed_run_id"] = resumed["run_id"]
        keys.append(own)
    for number, run in zip(joined(keys), found.values(), strict=True):
        run["job_id"] = str(number)
    for run in found.values():
        # Where a resumed job began is where its first run began.
        origin, seen = run, set()
        while origin.get("resumed_run_id") and origin["run_id"] not in seen:
            seen.add(origin["run_id"])
            origin = found[origin["resumed_run_id"]]
        run["origin_checkpoint_id"] = origin["base_checkpoint_id"]


def prices_of(mart_price_book: pl.DataFrame) -> dict[tuple[str, str, str], list[tuple[date, float]]]:
    """On-demand prices of an instance-hour by instance type, region and currency, oldest first."""
    found: dict[tuple[str, str, str], list[tuple[date, float]]] = {}
    listed = mart_price_book.filter(offer="on_demand")
    for row in listed.sort("from_date", "price_evidence", descending=[False, True]).iter_rows(named=True):
        key = row["instance_type"], row["region_id"], row["billing_currency"]
        found.setdefault(key, []).append((row["from_date"], float(row["price_per_hour_usd"])))
    return found


def price_on(prices: Mapping[tuple[str, str, str], list[tuple[date, float]]], run: Run, day: date) -> float | None:
    """The on-demand price of the run's machine in its region on a day; None where the book begins later."""
    held = prices.get((run["instance_type"], run["region_id"], run["billing_currency"]), [])
    return next((usd for from_date, usd in reversed(held) if from_date <= day), None)
