"""The figures that a build prints last: the first screen of the report and the dashboard in a terminal."""

from pipelines.base.console import Console
from pipelines.engine import Engine
from pipelines.present.formats import Number, cents

_LABEL = 24
# The rows of the bill that are shown, under the basis of their amount.
_SHOWN = {
    ("bucket_group", "run"): ("Training runs cost", "effective, all delivered months"),
    ("bucket_group", "unused"): ("Paid for and not used", "idle, unattributed, unused capacity"),
}
_WITHOUT_RUNS = {
    ("accelerator", "accelerator"): ("Accelerators", "effective, all delivered months"),
    ("accelerator_run", "run or run tag"): ("Of it with a run tag", "effective; add run events to see cost per epoch"),
}


def show_key_figures(engine: Engine, console: Console) -> None:
    """Print the bill and key figures with their basis, in each currency of the bills."""
    totals = engine.query(
        "select billing_currency as currency, dimension, dimension_value, running_effective_cost_usd as cost_usd, "
        "running_billed_cost_usd as billed_cost_usd, is_running_cost_partial as is_partial "
        "from mart_cost_summary_monthly where is_newest_month and dimension in ('total', 'bucket_group', "
        "'accelerator', 'accelerator_run') order by 1, dimension <> 'total', 2, 3"
    ).rows(named=True)
    missing = dict(
        engine.query("select currency, max(all_unallocated_fee_usd) from detail_billing_month group by currency").rows()
    )
    recorded = engine.query(
        "select run_count from detail_run_summary where billing_currency is null and dimension = 'total'"
    ).rows()
    shown = _SHOWN if any(count for (count,) in recorded) else _WITHOUT_RUNS
    pair = engine.query(
        "select workload_id, baseline_instance_type, candidate_instance_type, saving_ratio, baseline_run_count, "
        "candidate_run_count, accelerator_spend_ratio, verdict "
        "from mart_silicon_comparison where cost_basis = 'effective' and saving_ratio is not null "
        "order by baseline_run_count desc, workload_id, billing_currency limit 1"
    ).rows(named=True)
    for total in totals:
        if total["dimension"] == "total":
            effective = cents(total["cost_usd"], total["currency"])
            _show("The bill", total["billed_cost_usd"], total["currency"], f"billed; {effective} effective", console)
            if fees := missing.get(total["currency"]):
                lacks = f"effective is without {cents(fees, total['currency'])} of fees whose use is not on the bill"
                _line("", "", lacks, console)
        elif named := shown.get((total["dimension"], total["dimension_value"])):
            partial = "; partial, some use has no cost on the bill" if total["is_partial"] else ""
            _show(named[0], total["cost_usd"], total["currency"], named[1] + partial, console)
    values = {total["dimension_value"] for total in totals}
    if shown is _WITHOUT_RUNS and "accelerator" in values and "run or run tag" not in values:
        console.say("No accelerator on the bill has a run tag: name its key under [tags], or add run events.")
    for row in pair:
        cheaper = "cheaper" if row["saving_ratio"] > 0 else "more expensive"
        model = row["workload_id"].split(" / ")[0]
        share = row["accelerator_spend_ratio"]
        runs = f"{row['baseline_run_count']} GPU and {row['candidate_run_count']} Trainium runs"
        saving = f"{model} {abs(row['saving_ratio']):.1%} {cheaper}, effective"
        _line("Trainium versus GPU", row["verdict"], saving, console)
        _line("", "", f"{row['candidate_instance_type']} against {row['baseline_instance_type']}", console)
        _line("", "", runs if share is None else f"{runs}, {share:.1%} of accelerator spend", console)


def _show(label: str, amount: Number | None, currency: str, basis: str, console: Console) -> None:
    _line(label, "unknown" if amount is None else cents(amount, currency), basis, console)


def _line(label: str, figure: str, basis: str, console: Console) -> None:
    console.say(f"{label.ljust(_LABEL)}{figure:>14}   {basis}")
