"""The runs of a baseline and a candidate machine that share a workload and a currency, with what makes them alike."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby, product
from typing import Any

import polars as pl

from pipelines.analysis import comparison_faults as faults
from pipelines.analysis.estimate import joined
from pipelines.analysis.matched import Run, at_once, has_result
from pipelines.base.cost import BASES
from pipelines.base.groups import grouped
from pipelines.transforms import Frames, Row, Rows, run_discount, run_weakness
from pipelines.transforms.run_evaluation import evaluated
from pipelines.transforms.run_weakness import JOIN_GRACE, uncertain, uncompiled, warm_starts

# The accelerator families that are compared: baseline, candidate. A third family is one more pair here.
FAMILY_PAIRS = (("gpu", "trainium"),)
PAIR_KEY = (
    "workload_id", "baseline_family", "baseline_instance_type", "candidate_family", "candidate_instance_type",
    "billing_currency",
)  # fmt: skip
# What makes runs alike, whatever workload they declare (design 5).
FIELDS = (*faults.FIELDS, "target")
# What a run takes over from its description, what is judged by it, what it takes over from its cost; and of a stay.
_DESCRIBED = ("workload_id", "purpose", "started_at", "ended_at", "is_end_inferred", "compile_run_id", *faults.FIELDS)
_JUDGED = (
    *("run_id", "status", "tokens_seen_count", "tokens_unit", "dataset_tokens", "epoch_unit"),
    *("epoch_completed_count", "epoch_tokens_seen_count", "epoch_samples_seen_count"),
    *("target_metric", "target_direction", "target_value"),
)
_BILLED = (
    "run_id", "billing_currency", "accelerator_family", "instance_type", "accelerator_count", "region_id",
    "accelerator_hours", "imds_cost_usd", "api_cost_usd", "nodemap_cost_usd", "tag_cost_usd", "type_match_cost_usd",
    "first_billing_month", "last_billing_month", "open_billing_month", "newest_usage_date",
)  # fmt: skip
_STAY = ("run_id", "resource_id", "joined_at", "left_at", "accelerators_used")
INPUTS = (
    "fct_run_cost", "fct_interval_cost", "dim_run", "dim_run_ancestor", "stg_tracker__run", "stg_tracker__resource",
    "stg_tracker__evaluation", "fct_run_machine", "fct_ledger_piece", "fct_resource_share_hourly",
    "fct_capacity_block_piece", "detail_claim_gap_monthly", "stg_tracker__attempt", "stg_tracker__phase",
    "stg_tracker__checkpoint", "stg_tracker__epoch", "fct_invoice_monthly", "fct_charge_sum_monthly",
    "fct_bill_total_monthly", "stg_aws__invoice_total",
)  # fmt: skip
# The first evaluation that met the target, hours that others claim too, machines not recorded, values of evaluations.
QUERIES = run_weakness.QUERIES | {
    "fct_capacity_block_piece": """
        select run_id, max(block_id) as block_id from fct_capacity_block_piece
        where run_id is not null and is_window_unknown
        group by run_id""",
    "fct_interval_cost": """
        select run_id, duration_ms, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
        from fct_interval_cost
        where interval_kind = 'target' and interval_key = '1'""",
    "fct_resource_share_hourly": """
        select run_id, resource_id, count(distinct case when is_overbooked then hour_started_at end) as hour_count
        from fct_resource_share_hourly
        where run_id is not null and (is_overbooked or evidence in ('tag', 'tag_folded', 'type_match'))
        group by run_id, resource_id
        order by run_id, resource_id""",
    "stg_tracker__evaluation": """
        select run_id, evaluated_at, step, evaluation_no, metric, split, value from stg_tracker__evaluation""",
}


def pairs_of(runs: Sequence[Run]) -> Iterator[tuple[dict[str, str], list[Run], list[Run]]]:
    """The runs of each pair of instance types that share workload and currency: key, baseline and candidate."""
    keys = ("workload_id", "billing_currency", "accelerator_family", "instance_type")
    ordered = sorted(runs, key=lambda run: [run[key] or "" for key in (*keys, "run_id")])
    sides = grouped(ordered, lambda run: tuple(run[key] for key in keys))
    # A side on which nothing completed has no cost of completing it, nor have runs that are billed in two currencies.
    completed = [side for side in sides if side[1] and any(map(has_result, sides[side]))]
    for (workload, currency), group in groupby(completed, key=lambda side: side[:2]):
        by_family = grouped(group, lambda side: side[2])
        for families in FAMILY_PAIRS:
            for baseline, candidate in product(*(by_family.get(family, []) for family in families)):
                key = (workload, *baseline[2:], *candidate[2:], currency)
                yield dict(zip(PAIR_KEY, key, strict=True)), sides[baseline], sides[candidate]


def runs_of(table: Frames) -> list[Run]:
    """Every run that may be compared, as analysis/matched.py takes it: costs, what makes it alike, warnings.

    `table` has the frames of INPUTS by name. A cost that the bill lacks a part of is unknown.
    """
    described = {row["run_id"]: row for row in table["dim_run"].select(*_DESCRIBED, *_JUDGED).iter_rows(named=True)}
    found = _billed_runs(described, table["fct_run_cost"], table["fct_interval_cost"])
    recorded = table["stg_tracker__run"].select("run_id", "parent_run_id", "base_checkpoint_id", "params_active")
    own = {row.pop("run_id"): row for row in recorded.iter_rows(named=True)}
    resource = table["stg_tracker__resource"].filter(~pl.col("is_any_machine")).select(_STAY)
    machine = table["fct_run_machine"].filter(~pl.col("is_any_machine"))
    machines = _rows_by("run_id", machine)
    stay = resource.join(machine, on=["run_id", "resource_id"], maintain_order="left")
    stays, on_machine = _rows_by("run_id", stay), _rows_by("resource_id", stay)
    last = table["stg_tracker__evaluation"].group_by("run_id").agg(pl.col("evaluated_at").max())
    times = table["dim_run"].select("run_id", "started_at", "ended_at").join(last, on="run_id", how="left")
    away = resource.join(times, on="run_id").filter(
        (pl.col("joined_at") - pl.col("started_at") > JOIN_GRACE)
        | (pl.max_horizontal("ended_at", "evaluated_at") - pl.col("left_at") > JOIN_GRACE)
    )
    idle = _rows_by("resource_id", table["fct_ledger_piece"].join(away, on="resource_id", how="semi"))
    evaluations = evaluated(table["stg_tracker__evaluation"], table["dim_run"])
    shared = _rows_by("run_id", table["fct_resource_share_hourly"])
    blocks = _rows_by("run_id", table["fct_capacity_block_piece"])
    gaps = _rows_by("run_id", table["detail_claim_gap_monthly"])
    unmet, discounts = (_rows_by("run_id", table[name]) for name in ("stg_tracker__attempt", "fct_charge_sum_monthly"))
    billed = {*table["fct_run_cost"].filter("is_billed")["run_id"]}
    restores = _rows_by("run_id", table["stg_tracker__phase"])
    by_run = table["stg_tracker__epoch"].group_by("run_id").agg("epoch_index", "fraction", "tokens_seen")
    epochs = {run_id: of_run for run_id, *of_run in by_run.iter_rows()}
    saves = dict(table["stg_tracker__checkpoint"].group_by("run_id").agg("tokens_seen").iter_rows())
    came_from = dict(table["dim_run_ancestor"].filter(generation_count=1)["run_id", "ancestor_run_id"].iter_rows())
    for run_id, run in found.items():
        about = described[run_id]
        target = about["target_metric"], about["target_direction"], about["target_value"]
        run["target"] = None if None in target else target
        run["target_words"] = faults.target_words(run["target"])
        run["machines"] = sorted({one["resource_id"] for of in (machines, shared) for one in of.get(run_id, [])})
        run |= own[run_id] | evaluations[run_id]
        indexes, fractions, tokens = epochs.get(run_id, ([], [], []))
        run["epochs"] = dict(zip(indexes, fractions, strict=True))
        run["token_counts"] = sorted({*filter(None, tokens), *saves.get(run_id, [])})
        # The bill has the hours that others claim too, so their cost is uncertain and not partial.
        run["uncertain"], run["partial"] = (
            [*uncertain(run, *of), *uncompiled(about, described, billed, *of)]
            for of in ((shared, blocks, gaps, unmet), ({}, {}, gaps, unmet))
        )
        run["warnings"] = [
            *run["uncertain"],
            *run_discount.undiscounted(discounts.get(run_id, [])),
            *warm_starts(run, restores.get(run_id, []), came_from.get(run_id)),
            *run_weakness.weaknesses(run, stays.get(run_id, []), on_machine, idle),
        ]
        run["costs"] = dict.fromkeys(run["costs"], (None, None)) if run["partial"] else run["costs"]
        if run_id in gaps and run["ended_at"] > gaps[run_id][0]["newest_usage_at"]:
            run["status"] = "running"
    _add_jobs(found, came_from, described)
    for run_id, run in found.items():
        about = described[run_id]
        run["epoch_sizes"] = faults.epoch_sizes(about, epochs.get(run_id, ()), "resumed_run_id" in run)
        tokens, whole = run["epoch_sizes"].get("tokens"), about["dataset_tokens"]
        run["tokens_per_dataset"] = tokens / float(whole) if tokens and whole else None
    return list(found.values())


def _billed_runs(
    described: Mapping[str, Row], fct_run_cost: pl.DataFrame, fct_interval_cost: pl.DataFrame
) -> dict[str, Row]:
    """Every billed run on one kind of GPU or Trainium machine by its id, with `costs`: (whole, to target) by basis.

    A run bears its equal part of what was compiled for it (mart_run_cost has both views). What was compiled for no
    billed run, or by a run that also trained, is a run of its own that succeeded at nothing. The cost `hours` is of
    instance-hours.
    """
    targets = {row["run_id"]: row for row in fct_interval_cost.iter_rows(named=True)}
    paying = (described[run_id] for run_id in fct_run_cost.filter("is_billed")["run_id"])
    linked = Counter(run["compile_run_id"] for run in paying if run["purpose"] != "compile_only")
    billed = fct_run_cost.filter("is_billed", pl.col("accelerator_family").is_in(["gpu", "trainium"]))
    return {
        cost["run_id"]: _billed_run(cost, described[cost["run_id"]], targets.get(cost["run_id"]))
        | {"loading_run_count": linked[described[cost["run_id"]]["compile_run_id"]]}
        for cost in billed.iter_rows(named=True)
        if cost["instance_type"] != "mixed" and _is_compared(described[cost["run_id"]], linked)
    }


def _is_compared(run: Mapping[str, Any], linked: Mapping[str | None, int]) -> bool:
    has_trained = (run["tokens_seen_count"] or 0) > 0 or (run["epoch_completed_count"] or 0) > 0
    return run["purpose"] != "compile_only" or run["run_id"] not in linked or has_trained


def _billed_run(cost: Mapping[str, Any], run: Mapping[str, Any], target: Mapping[str, Any] | None) -> Row:
    is_compiler = run["purpose"] == "compile_only"
    reached: Mapping[str, Any] = {} if target is None or is_compiler else target
    hours, count = (cost["accelerator_hours"], reached.get("accelerator_hours")), cost["accelerator_count"]
    tokens, epochs = run["tokens_seen_count"] or 0, run["epoch_completed_count"] or 0
    return {
        **{name: cost[name] for name in _BILLED},
        **{name: run[name] for name in _DESCRIBED},
        "status": "failed" if is_compiler and run["status"] == "completed" else run["status"],
        "target_accelerator_hours": hours[1],
        "target_duration_ms": reached.get("duration_ms"),
        "compiled_costs": {basis: cost[f"{basis}_compile_part_usd"] for basis in BASES},
        "is_free": cost["accelerator_hours"] and cost["effective_cost_usd"] == cost["attached_cost_usd"],
        "attached_costs": {"effective": cost["attached_cost_usd"], "list": cost["attached_list_cost_usd"]},
        "epoch_completed_count": epochs if run["epoch_unit"] == "dataset_pass" and epochs > 0 else None,
        "tokens_seen_count": tokens if tokens > 0 else None,
        "million_token_count": float(tokens) / 1e6 if tokens > 0 else None,
        "costs": {
            basis: tuple(
                _sum(of_run.get(f"{basis}_cost_usd"), cost[f"{basis}_compile_part_usd"]) for of_run in (cost, reached)
            )
            for basis in BASES
        }
        | {"hours": tuple(float(part) / count if part and count else None for part in hours)},
    }


def _sum(cost: Decimal | None, compiled: Decimal | None) -> Decimal | None:
    return None if cost is None or compiled is None else cost + compiled


def _rows_by(column: str, frame: pl.DataFrame) -> dict[str, Rows]:
    return frame.rows_by_key(column, named=True, include_key=True)


def _add_jobs(found: dict[str, Row], came_from: Mapping[str, str], described: Mapping[str, Row]) -> None:
    """Name the job of each run: runs resumed from one another are one; so are equal evaluations on shared machines, and
    nearly equal ones at the same time."""
    on_machine: dict[tuple[str, ...], list[Run]] = {}
    for run in found.values():
        for machine in run["machines"]:
            on_machine.setdefault((*_side(run), machine), []).append(run)
    twins: dict[str, list[str]] = {}
    for before, run in (pair for runs in on_machine.values() for pair in at_once(runs)):
        twins.setdefault(run["run_id"], []).append(before["run_id"])
    keys = []
    for run_id, run in found.items():
        side = _side(run)
        own: list[Any] = [(*side, run_id), *((*side, twin) for twin in twins.get(run_id, ()))]
        if run["evaluations"]:
            own += [(*side, machine, run["evaluations"]) for machine in run["machines"]]
        first = came_from.get(run_id, "") if run["base_checkpoint_id"] else ""
        resumed, begun = found.get(first), described.get(first)
        if resumed and side == _side(resumed):
            own.append((*side, resumed["run_id"]))
            run["resumed_run_id"] = resumed["run_id"]
        elif begun and all(begun[name] in (None, run[name]) for name in ("model", "dataset")):
            run["begun_run_id"] = first
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


def _side(run: Run) -> tuple[str, str, str]:
    return run["workload_id"], run["instance_type"], run["billing_currency"]
