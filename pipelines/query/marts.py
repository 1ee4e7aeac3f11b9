"""Queries of the published tables, and the list of them: the question each answers, the most useful first."""

import re
from collections.abc import Sequence
from decimal import Decimal

import polars as pl

from pipelines.base import resources
from pipelines.base.console import Console
from pipelines.config.access import Teams
from pipelines.engine import Engine
from pipelines.models.catalog import SCHEMAS
from pipelines.models.contract import column_units, contract_paths, load_contract
from pipelines.models.marts import readable
from pipelines.warehouse.publication import Publication

# By subject: what a reader finds in each mart. 41 characters fit next to the longest name on 80 columns.
MARTS: dict[str, dict[str, str]] = {}
for row in resources.listed_rows(resources.DASHBOARDS / "marts.csv"):
    MARTS.setdefault(row["subject"], {})[row["mart"]] = row["shows"]
_PREFIX = re.compile(r"^DuckDB: ((\w+ )+Error: )?")
# What sets a repeated column apart from the first of its name.
_NUMBER = re.compile(r"_\d+$")
# Shown first where not every column fits.
BASES = ("effective_cost_usd", "billed_cost_usd")
# A double above it has no cents.
_LARGEST = 1e13
# Units of amounts that are money to spend rather than unit prices.
_MONEY = ("usd/month", "usd/run")


def shown_first(names: Sequence[str], sql: str) -> list[str] | None:
    """The columns to show first where not all fit; None where the query names each, so that none is left out."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    # The name of an expression is the expression.
    named = [name for name in names if name.lower() in words or not name.isidentifier()]
    return None if len(named) == len(names) else [*named, *BASES]


def refusal(error: str, sql: str) -> str:
    """The engine's sentence about a query, without the names of its parts, and how to go on."""
    sentence = _PREFIX.sub("", error).rstrip(".!").replace("! Did you mean", "; did you mean")
    if sql.isidentifier():
        fix = f'`trainledger query "from {sql}"` shows a table, `trainledger query` without a query lists the marts.'
    elif error.startswith("DuckDB: Parser Error: "):
        return f"{sentence}."
    elif sentence.startswith("Referenced column"):
        named = next((word for word in re.findall(r"\w+", sql) if word.startswith(("mart_", "detail_"))), "TABLE")
        fix = f"`trainledger explain {named}` lists the columns."
    else:
        fix = "`trainledger query` without a query lists the marts."
    return f"{sentence}{'' if sentence.endswith('?') else ';'} {fix}"


def in_cents(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with amounts of money rounded to cents.

    Amounts below a cent keep their first two digits, unit prices below a dollar (USD per token, epoch, hour) three.
    """

    def rounded(amount: pl.Series) -> pl.Series:
        unit = column_units().get(_NUMBER.sub("", amount.name), "")
        is_price = unit.startswith("usd/") and unit not in _MONEY
        digits, limit = (3, Decimal(1)) if is_price else (2, Decimal("0.01"))
        figures = amount.cast(pl.Float64).round_sig_figs(digits).cast(pl.Decimal(38, 10))
        # Quotients are doubles.
        amount = amount.cast(pl.Decimal(38, 10)) if amount.dtype.is_float() else amount
        small = (amount.abs() < limit) & (figures != amount.round(2))
        if not small.any():
            return amount.round(2).cast(pl.Decimal(38, 2))
        return pl.select(pl.when(small).then(figures).otherwise(amount.round(2))).to_series().alias(amount.name)

    return frame.with_columns(rounded(column) for column in frame if _is_money(column))


def _is_money(column: pl.Series) -> bool:
    """Whether a column holds amounts: exact ones, or doubles that are not too large or infinite to round."""
    is_exact, is_close = column.dtype.is_decimal(), column.dtype.is_float()
    is_amount = is_exact or (is_close and (column.abs() < _LARGEST).all())
    return _NUMBER.sub("", column.name).endswith("_usd") and bool(is_amount)


def listed(engine: Engine, published: Publication, teams: Teams = None, *, detail: bool = False) -> pl.DataFrame:
    """The public tables of a publication, of a reader of `teams` those it may see.

    Their subject, name, rows, what one row is and what it shows.
    """
    known = {name: (subject, meaning) for subject, marts in MARTS.items() for name, meaning in marts.items()}
    found = {}
    for key in sorted(readable(published.tables, teams).values()):
        layer, _, name = key.partition("/")
        if layer == "marts" or (detail and layer == "detail"):
            grain = load_contract(key).grain if key in contract_paths() else "not in this version"
            subject, meaning = known.get(name, ("detail" if layer == "detail" else "other", grain))
            count = engine.query(f"select count(*) from {SCHEMAS[layer]}.{name}").item()
            found[name] = (subject, name, count, grain.removeprefix("one row per "), meaning)
    order = [*(name for name in known if name in found), *(name for name in found if name not in known)]
    columns = {"subject": pl.String, "mart": pl.String, "rows": pl.Int64, "one row per": pl.String, "shows": pl.String}
    return pl.DataFrame([found[name] for name in order], schema=columns, orient="row")


def show_list(frame: pl.DataFrame, console: Console, *, detail: bool = False) -> None:
    """Print the tables by subject, one line each."""
    width = max(map(len, frame["mart"]), default=0)
    for (subject,), rows in frame.group_by("subject", maintain_order=True):
        console.say(f"{str(subject).capitalize()}")
        for row in rows.iter_rows(named=True):
            line = f"  {row['mart'].ljust(width)}  {row['shows']}{'' if row['rows'] else ' (no rows)'}"
            console.say(line, hang=width + 4)
    if not detail:
        console.note("Drill-downs: `trainledger query --detail`. Columns: `trainledger explain MART`.")
