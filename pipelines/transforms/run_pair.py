"""The runs of each GPU and Trainium machine that share a workload and a currency, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product

import polars as pl

from pipelines.analysis.matched import Run

BASES = ("effective", "list", "billed")


def pairs_of(runs: pl.DataFrame) -> Iterator[tuple[dict[str, str], dict[str, tuple[list[Run], list[Run]]]]]:
    """The runs of each pair of instance types that share workload and currency: by basis, GPU and Trainium."""
    keys = ["workload_id", "billing_currency", "accelerator_family", "instance_type"]
    sides: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    for run in runs.sort(*keys, "run_id").iter_rows(named=True):
        sides.setdefault(tuple(run[key] for key in keys), {}).setdefault(run["cost_basis"], []).append(run)
    # A side on which nothing completed has no cost of completing it.
    told = [side for side in sides if any(run["status"] == "completed" for run in sides[side]["effective"])]
    for (workload, currency), group in groupby(told, key=lambda side: side[:2]):
        types: dict[str, list[tuple[str, ...]]] = {"gpu": [], "trainium": []}
        for side in group:
            types[side[2]].append(side)
        for gpu, trainium in product(types["gpu"], types["trainium"]):
            key = {"workload_id": workload, "billing_currency": currency}
            key |= {"gpu_instance_type": gpu[3], "trainium_instance_type": trainium[3]}
            yield key, {basis: (sides[gpu][basis], sides[trainium][basis]) for basis in BASES}
