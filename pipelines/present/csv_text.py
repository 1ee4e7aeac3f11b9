"""Rows as CSV that a spreadsheet opens without running what is in it.

The FOCUS export writes its own, from the engine, and keeps to the same pattern.
"""

from __future__ import annotations

import polars as pl

# What a spreadsheet takes for the start of a formula, or skips to find one behind it.
FORMULA = r"^[=+\-@\t\r\n]"


def csv_text(frame: pl.DataFrame) -> str:
    """The rows as CSV with a header, amounts with every digit and null as nothing between two commas.

    A text, or a column's name, that would start a formula gets an apostrophe in front; numbers stay numbers.
    """
    written = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    return frame.with_columns(written.str.replace(FORMULA, "'$0")).rename(_told).write_csv()


def _told(name: str) -> str:
    # PIVOT makes columns of what a run or a tag is called.
    return pl.Series([name]).str.replace(FORMULA, "'$0").item()
