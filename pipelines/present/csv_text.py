"""Rows as CSV that a spreadsheet opens without running formulas.

The FOCUS export writes its own, from the engine, and keeps to the same pattern.
"""

import json
import re
import sys

import polars as pl

from pipelines.base.console import printable
from pipelines.base.errors import UsageError
from pipelines.config.options import Form

# What a spreadsheet takes for the start of a formula, or skips to find one behind it; some read full-width signs alike.
FORMULA = r"^[=+\-@＝＋－＠\t\r\n]"
# What may be such a character as a terminal obeys; JSON has them as escapes.
_UNPRINTED = re.compile(r"[^ -~]")
_TEXT = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)


def csv_text(frame: pl.DataFrame) -> str:
    """The rows as CSV with a header, amounts with every digit and null as nothing between two commas.

    A text, or a column's name, that would start a formula gets an apostrophe in front; numbers stay numbers.
    """
    safe = frame.with_columns(_TEXT.str.replace(FORMULA, "'$0"))
    # PIVOT makes columns of what a run or a tag is called.
    return safe.rename(lambda name: re.sub(FORMULA, r"'\g<0>", name)).write_csv()


def print_csv(frame: pl.DataFrame) -> None:
    """Write the rows to standard output; on a terminal control characters are escaped."""
    if sys.stdout.isatty():
        frame = frame.with_columns(_TEXT.map_elements(printable, pl.String)).rename(printable)
    sys.stdout.write(csv_text(frame))


def print_rows(frame: pl.DataFrame, form: Form) -> None:
    """Write the rows to standard output as JSON or CSV; UsageError where the form cannot hold a column."""
    try:
        if form == "json":
            sys.stdout.write(_UNPRINTED.sub(_escaped, frame.write_json()) + "\n")
        else:
            print_csv(frame)
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"--{form} cannot hold a column ({error}); cast it to varchar.") from None


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]
