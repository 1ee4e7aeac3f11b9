"""The figures that the demo prints last."""

from pipelines.base.console import Console
from pipelines.engine import Engine
from pipelines.present.formats import cents


def show_key_figures(engine: Engine, console: Console) -> None:
    """Print three key figures with their basis, in each currency of the bills."""
    totals = engine.query(
        "select billing_currency as currency, dimension_value as name, running_effective_cost_usd as cost_usd "
        "from mart_cost_summary_monthly where is_newest_month and dimension = 'bucket_group' order by 1, 2"
    ).rows(named=True)
    pair = engine.query(
        "select workload_id, baseline_instance_type, candidate_instance_type, saving_ratio, baseline_run_count, "
        "candidate_run_count, accelerator_spend_ratio, verdict "
        "from mart_silicon_comparison where cost_basis = 'effective' and saving_ratio is not null "
        "order by baseline_run_count desc, workload_id, billing_currency limit 1"
    ).rows(named=True)
    console.say("")
    for total in totals:
        amount = cents(total["cost_usd"], total["currency"])
        if total["name"] == "run":
            console.say(f"Training runs cost      {amount:>13}   effective, all delivered months")
        elif total["name"] == "unused":
            console.say(f"Paid for and not used   {amount:>13}   effective: idle, unattributed, unused capacity")
    for row in pair:
        cheaper = "cheaper" if row["saving_ratio"] > 0 else "more expensive"
        model = row["workload_id"].split(" / ")[0]
        machines = f"{row['candidate_instance_type']} against {row['baseline_instance_type']}"
        runs = f"{row['baseline_run_count']} GPU and {row['candidate_run_count']} Trainium runs"
        share = row["accelerator_spend_ratio"]
        saving = f"{abs(row['saving_ratio']):>12.1%}   {cheaper}, effective"
        console.say(f"Trainium versus GPU      {saving}: {row['verdict']}; {model}")
        console.say(f"{'':40}{machines}, {runs}")
        if share is not None:
            console.say(f"{'':40}{share:.1%} of accelerator spend")
    console.say("")
