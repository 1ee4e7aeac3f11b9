"""The list of the published tables, each with the question it answers, the most useful first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipelines.models.catalog import SCHEMAS, load_catalog
from pipelines.models.contract import load_contract

if TYPE_CHECKING:
    from pipelines.base.console import Console
    from pipelines.engine import Engine
    from pipelines.warehouse.publication import Publication

# By subject: what a reader finds in each mart. 41 characters fit next to the longest name on 80 columns.
MARTS = {
    "bill": {
        "mart_cost_summary_monthly": "a month's bill by bucket",
        "mart_cost_ledger_daily": "every dollar, by day and bucket",
        "mart_team_cost_monthly": "what each team costs",
        "mart_unattributed_cost_daily": "accelerators that no run explains",
        "mart_invoice_reconciliation_monthly": "the ledger compared with each invoice",
        "mart_restatement": "what AWS changed after first delivery",
    },
    "training": {
        "mart_run_cost": "each run's cost, total and per unit",
        "mart_epoch_cost": "the cost of each completed epoch",
        "mart_checkpoint_cost": "the cost of each durable checkpoint",
        "mart_run_waste": "spend that bought no progress, by cause",
    },
    "proof": {
        "mart_silicon_comparison": "GPU and Trainium compared, and a verdict",
        "mart_portfolio": "the recommendation for each workload",
        "mart_savings_monthly": "savings against a baseline, by month",
        "mart_cost_decomposition": "why the cost per unit of work differs",
        "mart_break_even": "when moving a workload pays back",
        "mart_price_book": "list prices with the day they hold from",
    },
    "commitments": {
        "mart_commitment_coverage_daily": "spend that commitments cover",
        "mart_commitment_utilization_monthly": "how much of each commitment is used",
        "mart_effective_savings_rate_monthly": "savings net of unused commitments",
        "mart_commitment_recommendation": "commitments worth buying",
        "mart_capacity_utilization_daily": "how much of reserved capacity is used",
    },
    "serving": {
        "mart_inference_cost_daily": "the cost of serving, per million tokens",
        "mart_serving_comparison": "GPU, Inferentia and Bedrock compared",
    },
}


def listed(engine: Engine, published: Publication, *, detail: bool = False) -> pl.DataFrame:
    """The public tables of a publication: subject, name, rows, what one row is and what it shows."""
    known = {name: (subject, meaning) for subject, marts in MARTS.items() for name, meaning in marts.items()}
    present = {model.key for model in load_catalog().public}
    found = {}
    for key in sorted(published.tables):
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
