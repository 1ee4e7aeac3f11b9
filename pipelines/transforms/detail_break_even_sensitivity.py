"""One row per port and input: a bar of its tornado, what the port is expected to bring at either end of the input."""

import polars as pl

from pipelines.analysis.break_even import tornado
from pipelines.transforms import Rows, port_case
from pipelines.transforms.port_case import CURRENCY, port_cases

INPUTS = port_case.INPUTS


def build(**table: pl.DataFrame) -> Rows:
    """The bars of every port whose saving and cadence are known, the widest first."""
    return [
        {"port_name": found.port["port_name"], "billing_currency": CURRENCY, "swing_rank": rank, **vars(bar)}
        for found in port_cases(table)
        if found.case is not None
        for rank, bar in enumerate(tornado(found.case, found.low, found.high), start=1)
    ]
