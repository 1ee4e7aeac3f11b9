"""One row per cost basis: what Trainium saves over the workloads whose comparison is decided or inconclusive."""

from collections.abc import Iterator

import polars as pl

from pipelines.analysis.comparison import BASES
from pipelines.analysis.estimate import portfolio
from pipelines.analysis.verdict import DECIDED, RUN_FLOOR
from pipelines.transforms import Row, Rows
from pipelines.transforms.port_case import best_pair

INPUTS = ("mart_silicon_comparison",)
# Left out is what may claim nothing or shows too little, never what contradicts the claim.
_SHOWN = (*DECIDED, "inconclusive")


def build(mart_silicon_comparison: pl.DataFrame) -> Rows:
    """Each workload counts once, with its pair of the most runs; below three of them nothing is estimated."""
    rows: Rows = []
    for basis in BASES:
        pairs = dict(_pairs(mart_silicon_comparison, basis))
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


def _pairs(comparison: pl.DataFrame, basis: str) -> Iterator[tuple[str, Row]]:
    """The first currency by name where a workload is billed in several: a ratio has none."""
    keys = comparison.select("workload_id", "billing_currency").unique().sort(pl.all(), descending=True)
    for workload_id, currency in keys.iter_rows():
        pair = best_pair(comparison, workload_id, currency, basis)
        if pair is not None:
            yield workload_id, pair
