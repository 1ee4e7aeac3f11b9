"""One row per port and input: a bar of its tornado, what the port is expected to bring at either end of the input."""

from __future__ import annotations

import polars as pl

from pipelines.analysis.break_even import tornado
from pipelines.transforms import port_case
from pipelines.transforms.port_case import CURRENCY, port_cases

INPUTS = port_case.INPUTS
_VALUES = ("low_value", "base_value", "high_value", "break_even_value")
_SCHEMA = {
    "port_name": pl.String,
    "billing_currency": pl.String,
    "sensitivity_input": pl.String,
    "swing_rank": pl.Int64,
    **dict.fromkeys((*_VALUES, "low_npv_usd", "high_npv_usd", "swing_usd"), pl.Float64),
}


def build(**inputs: pl.DataFrame) -> pl.DataFrame:
    """The bars of every port whose saving and cadence are known, the widest first."""
    rows = [
        {
            "port_name": found.port["port_name"],
            "billing_currency": CURRENCY,
            "sensitivity_input": bar.input,
            "swing_rank": rank,
            "low_value": bar.low,
            "base_value": bar.base,
            "high_value": bar.high,
            "break_even_value": bar.break_even,
            "low_npv_usd": bar.at_low,
            "high_npv_usd": bar.at_high,
            "swing_usd": bar.swing,
        }
        for found in port_cases(**inputs)
        if found.case is not None
        for rank, bar in enumerate(tornado(found.case, found.low, found.high), start=1)
    ]
    return pl.DataFrame(rows, schema=_SCHEMA).with_columns(pl.col(pl.Float64).round(6))
