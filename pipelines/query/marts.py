"""The list of the published tables, each with the question it answers, the most useful first."""

import csv

import polars as pl

from pipelines.base import resources
from pipelines.base.console import Console
from pipelines.config.access import Teams
from pipelines.engine import Engine
from pipelines.models.catalog import SCHEMAS, load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.marts import readable
from pipelines.warehouse.publication import Publication

# By subject: what a reader finds in each mart. 41 characters fit next to the longest name on 80 columns.
MARTS: dict[str, dict[str, str]] = {}
with (resources.DASHBOARDS / "marts.csv").open(encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        MARTS.setdefault(row["subject"], {})[row["mart"]] = row["shows"]


def listed(engine: Engine, published: Publication, teams: Teams = None, *, detail: bool = False) -> pl.DataFrame:
    """The public tables of a publication, of a reader of `teams` those it may see.

    Their subject, name, rows, what one row is and what it shows.
    """
    known = {name: (subject, meaning) for subject, marts in MARTS.items() for name, meaning in marts.items()}
    present = {model.key for model in load_catalog().public}
    found = {}
    for key in sorted(readable(published.tables, teams).values()):
        layer, _, name = key.partition("/")
        if layer == "marts" or (detail and layer == "detail"):
            grain = load_contract(key).grain if key in present else "not in this version"
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
            console.say(line if len(line) <= console.width else f"{line[: console.width - 1]}…")
    if not detail:
        console.note("Drill-downs: `trainledger query --detail`. Columns: `trainledger explain MART`.")
