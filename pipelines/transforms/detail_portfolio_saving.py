"""One row per cost basis: what Trainium saves over the workloads whose comparison is decided or inconclusive."""

import polars as pl

from pipelines.analysis.estimate import portfolio
from pipelines.analysis.verdict import DECIDED, RUN_FLOOR
from pipelines.base.cost import BASES
from pipelines.transforms import Row, Rows
from pipelines.transforms.port_case import best_pair

INPUTS = ("mart_silicon_comparison",)
# Left out is what may claim nothing or shows too little, never what contradicts the claim.
_SHOWN = (*DECIDED, "inconclusive")


def build(mart_silicon_comparison: pl.DataFrame) -> Rows:
    """Each workload counts once, with its pair of the most runs; below three of them nothing is estimated."""
    rows: Rows = []
    workloads = mart_silicon_comparison.select("workload_id", "billing_currency").unique()
    # The first currency by name where a workload is billed in several: a ratio has none.
    keys = workloads.sort(pl.all(), descending=True).rows()
    for basis in BASES:
        pairs = {key[0]: pair for key in keys if (pair := best_pair(mart_silicon_comparison, key[0], key[1], basis))}
        savings = {
            name: float(pair["saving_ratio"])
            for name, pair in pairs.items()
            if pair["verdict"] in _SHOWN and float(pair["saving_ratio"]) < 1
        }
        row: Row = {
            "cost_basis": basis,
            "workload_count": len(savings),
            "left_out_workload_count": len(pairs) - len(savings),
            "portfolio_reason": f"workloads that can be judged are {len(savings)}, where {RUN_FLOOR} are needed",
        }
        if len(savings) >= RUN_FLOOR:
            found = portfolio(savings)
            row |= {
                "saving_ratio": found.saving,
                "saving_low_ratio": found.low,
                "saving_high_ratio": found.high,
                "portfolio_reason": f"t interval over {len(savings)} workloads, each counting once whatever it spends",
            }
        if pairs:
            rows.append(row)
    return rows
