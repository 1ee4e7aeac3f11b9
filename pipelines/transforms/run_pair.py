"""The runs of a baseline and a candidate machine that share a workload and a currency."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product

import polars as pl

from pipelines.analysis.matched import Run

BASES = ("effective", "list", "billed")
# The accelerator families that are compared: baseline, candidate. A third family is one more pair here.
FAMILY_PAIRS = (("gpu", "trainium"),)
PAIR_KEY = (
    "workload_id", "baseline_family", "baseline_instance_type", "candidate_family", "candidate_instance_type",
    "billing_currency",
)  # fmt: skip


def pairs_of(runs: pl.DataFrame) -> Iterator[tuple[dict[str, str], dict[str, tuple[list[Run], list[Run]]]]]:
    """The runs of each pair of instance types that share workload and currency: by basis, baseline and candidate."""
    keys = ["workload_id", "billing_currency", "accelerator_family", "instance_type"]
    sides: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    for run in runs.sort(*keys, "run_id").iter_rows(named=True):
        sides.setdefault(tuple(run[key] for key in keys), {}).setdefault(run["cost_basis"], []).append(run)
    # A side on which nothing completed has no cost of completing it.
    completed = [side for side in sides if any(run["status"] == "completed" for run in sides[side]["effective"])]
    for (workload, currency), group in groupby(completed, key=lambda side: side[:2]):
        by_family: dict[str, list[tuple[str, ...]]] = {}
        for side in group:
            by_family.setdefault(side[2], []).append(side)
        for families in FAMILY_PAIRS:
            for baseline, candidate in product(*(by_family.get(family, []) for family in families)):
                key = (workload, *baseline[2:], *candidate[2:], currency)
                pair = {basis: (sides[baseline][basis], sides[candidate][basis]) for basis in BASES}
                yield dict(zip(PAIR_KEY, key, strict=True)), pair
