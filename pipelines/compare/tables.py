"""The requested rows of the comparison, and as text: the sentences of the mart, figures rounded."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from pipelines.analysis.comparison import SIDES
from pipelines.base.console import Console, counted
from pipelines.base.cost import BASES
from pipelines.base.errors import UsageError
from pipelines.engine import Engine
from pipelines.present.formats import UNKNOWN, cents, day, figure, large, percent, unit_usd

MEASURES = {
    "cost_to_target": "cost to reach the target",
    "cost_per_epoch": "cost per completed epoch",
    "cost_per_million_tokens": "cost per million tokens",
    "none": "no common unit of work",
}
_UNITS = {
    "cost_to_target": "success",
    "cost_per_epoch": "completed epoch",
    "cost_per_million_tokens": "million tokens",
    "none": "unit of work",
}
RECOMMENDATIONS = {"gpu": "GPU", "trainium": "Trainium"}
_PAIR = ("workload_id", "billing_currency", "baseline_instance_type", "candidate_instance_type")
# Two machines for an hour are two instance-hours and one on the clock.
_MEASURED = {
    "hours_per_unit": "instance-hours per {unit}",
    "hours_to_target": "wall-clock hours to the target",
    "tokens_per_second": "tokens per second",
}
_MANY = 8
Row = Mapping[str, Any]
Lines = Sequence[tuple[str, ...]]
"""The label and the figure of either side, a line each."""


def show(
    rows: pl.DataFrame, basis: str | None, recommendations: Mapping[tuple[str, str], Row | None], console: Console
) -> None:
    """One block per pair: both families, the verdict on `basis` (else the registered, else effective), other bases, and
    the recommendation, with the plan of a pilot where no measurement decides."""
    for number, (_, group) in enumerate(groupby(rows.iter_rows(named=True), key=lambda r: [r[k] for k in _PAIR])):
        pair = list(group)
        wanted = basis or pair[0]["registered_cost_basis"] or "effective"
        chosen = next(row for row in pair if row["cost_basis"] == wanted)
        types = chosen["baseline_instance_type"], chosen["candidate_instance_type"]
        show_block(number, chosen["workload_id"], types, _sides(chosen), _words(chosen), console)
        if len(pair) > 1:
            console.table(_bases(pair))
        for sentence in _recommendation(recommendations[chosen["workload_id"], chosen["billing_currency"]], pair):
            console.paragraph(sentence)
    # The same in every row.
    count, false = rows.select("registered_comparison_count", "expected_false_count").row(0)
    if count:
        console.say("")
        console.paragraph(
            f"{counted(count, 'registered comparison')} at 95% confidence: {false:.2f} wrong verdicts expected."
        )


def show_block(
    number: int, title: str, sides: Sequence[str], lines: Lines, sentences: Iterable[str], console: Console
) -> None:
    """Block `number` of several: its title, a line per figure of both `sides`, then sentences."""
    if number:
        console.say("")
    console.say(title)
    console.table(pl.DataFrame([*lines], schema=dict.fromkeys(["", *sides], pl.String), orient="row"))
    for sentence in sentences:
        console.paragraph(sentence)


def _sides(row: Row) -> Lines:
    """A line per figure, GPU next to Trainium."""
    money_of = f"{MEASURES[row['unit_measure']]}, {row['cost_basis']}"
    lines = [
        ("runs compared", *(_count(row[f"{side}_run_count"]) for side in SIDES)),
        ("failed, cost included", *(_failed(row, side) for side in SIDES)),
        (money_of, *(amount(row, f"{side}_unit_cost_usd", unit_usd) for side in SIDES)),
        ("instance cost without a run", *(amount(row, f"{side}_residual_cost_usd", cents) for side in SIDES)),
    ]
    for name, label in _MEASURED.items():
        if any(row[f"{side}_{name}"] is not None for side in SIDES):
            label = label.format(unit=_UNITS[row["unit_measure"]])
            lines.append((label, *(figure(row[f"{side}_{name}"]) for side in SIDES)))
    if row["quality_metric"]:
        lines.append((f"final {row['quality_metric']}", *(_plain(row[f"{side}_final_quality"]) for side in SIDES)))
    return lines


def _words(row: Row) -> Iterator[str]:
    if row["saving_ratio"] is not None:
        yield f"Saving:   {_saving(row)}"
    yield f"Verdict:  {row['verdict']}: {row['verdict_reason']}."
    if row["accelerator_spend_ratio"] is not None:
        yield f"Scope:    the compared runs are {row['accelerator_spend_ratio']:.1%} of accelerator spend."
    if row["delay_cost_usd"] is not None:
        later = "later" if row["delay_cost_usd"] > 0 else "sooner"
        yield f"Delay:    a run ends {later}, worth {cents(abs(row['delay_cost_usd']), 'USD')}; no saving includes it."
    if row["verdict_sensitivity"]:
        yield f"What would change the verdict: {row['verdict_sensitivity']}."
    if row["evidence_shares"]:
        yield f"Evidence: {row['evidence_shares']} of the dollars."
    yield f"Prices:   as the bill paid them, up to {day(row['price_date'])}."
    if row["registration"]:
        yield (
            f"Registered: {row['registration']} of {day(row['registered_on'])}, {row['registered_cost_basis']} basis, "
            f"sha256 {row['registration_seal'][:12]}."
        )


def _bases(pair: Sequence[Row]) -> pl.DataFrame:
    lines = [
        (
            row["cost_basis"],
            amount(row, "baseline_unit_cost_usd", unit_usd),
            amount(row, "candidate_unit_cost_usd", unit_usd),
            _saving(row),
            row["verdict"],
        )
        for row in pair
    ]
    return pl.DataFrame(lines, schema=["basis", "GPU", "Trainium", "saving", "verdict"], orient="row")


def _recommendation(portfolio: Row | None, pair: Sequence[Row]) -> Iterator[str]:
    if portfolio is None:
        return
    currency, stake = portfolio["billing_currency"], portfolio["monthly_at_stake_usd"]
    choice = RECOMMENDATIONS.get(portfolio["recommendation"], portfolio["recommendation"])
    yield f"Recommendation (effective basis): {choice}; {portfolio['recommendation_reason']}."
    if stake is None:
        stake_text = "unknown, as the cost of some use is not on the bill"
    elif portfolio["at_stake_evidence"] != "at most all of it":
        side = "Trainium" if stake >= 0 else "GPU"
        stake_text = f"{cents(abs(stake), currency)} a month on {side}, {portfolio['at_stake_evidence']}"
    else:
        stake_text = f"at most all of {cents(stake, currency)} a month"
    yield f"At stake: {stake_text}; bought as {portfolio['purchase_shares'] or 'unknown'}."
    if portfolio["deciding_result"] is None:
        return
    cost = amount(portfolio, "pilot_run_cost_usd", cents)
    types = [portfolio[f"pilot_{side}_instance_type"] for side in SIDES]
    yield (
        f"Pilot:    {counted(portfolio['pilot_baseline_run_count'], 'run')} on {types[0] or 'a GPU'} and "
        f"{portfolio['pilot_candidate_run_count']} on {types[1] or 'Trainium'} for {cost} "
        f"({portfolio['run_count_basis']}); measure {portfolio['to_measure']}."
    )
    yield f"Decides:  {portfolio['deciding_result']}."
    missing = portfolio["missing_evidence"] or ""
    for row in pair:
        # The verdict stands above.
        missing = missing.removeprefix(f"{row['verdict']}: {row['verdict_reason']}").removeprefix("; ")
    if missing:
        yield f"Missing:  {missing}."


def _saving(row: Row) -> str:
    if row["saving_ratio"] is None:
        return "none claimed"
    if row["saving_low_ratio"] is None:
        return f"{percent(row['saving_ratio'])}, no interval"
    interval = f"{percent(row['saving_low_ratio'])} to {percent(row['saving_high_ratio'])}"
    return f"{percent(row['saving_ratio'])} ({interval})"


def _failed(row: Row, side: str) -> str:
    count = row[f"{side}_failed_run_count"]
    return f"{count} ({amount(row, f'{side}_failed_cost_usd', cents)})" if count else _count(count)


def amount(row: Row, name: str, form: Callable[[Any, str], str]) -> str:
    """An amount in the currency of its row; `n/a` for an unknown one."""
    return form(row[name], row["billing_currency"])


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _plain(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.6g}"


def rows_of(marts: Engine, workload: str | None, basis: str | None) -> pl.DataFrame:
    """The workload's rows of mart_silicon_comparison, of all workloads for None; UsageError where there are none.

    `workload` is an id, or a part that only one compared workload has; `basis` leaves the rows of one.
    """
    rows = marts.query("select * from mart_silicon_comparison")
    if workload is not None:
        rows = rows.filter(workload_id=_named(marts, rows, workload))
    if not rows.height:
        raise UsageError(
            "No workload has a completed run on both GPU and Trainium; `trainledger report` lists all workloads."
        )
    if basis is not None:
        rows = rows.filter(cost_basis=basis)
    order = pl.col("cost_basis").replace_strict(BASES, range(len(BASES)), return_dtype=pl.Int64)
    return rows.sort(*_PAIR, order)


def recommendation_of(marts: Engine, workload_id: str, currency: str) -> dict[str, Any] | None:
    """The workload's row of the portfolio."""
    key = {"activity": "training", "workload_id": workload_id, "billing_currency": currency}
    rows = marts.query("select * from mart_portfolio").filter(**key)
    return rows.row(0, named=True) if rows.height else None


def _named(marts: Engine, rows: pl.DataFrame, name: str) -> str:
    compared = rows["workload_id"].unique().sort().to_list()
    found = [name] if name in compared else [known for known in compared if name.lower() in known.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - _MANY} more" if len(found) > _MANY else ""
        raise UsageError(
            f"{name!r} is part of several workloads: {'; '.join(found[:_MANY])}{more}; write more of the name."
        )
    runs = marts.query("select workload_id, accelerator_family, status from mart_run_cost").filter(
        pl.col("workload_id").str.to_lowercase().str.contains(name.lower(), literal=True)
    )
    if not runs.height:
        raise UsageError(f"Workload {name!r} not found; `trainledger compare` lists the compared workloads.")
    workload = runs["workload_id"].min()
    completed = runs.filter(workload_id=workload, status="completed")
    gpu, trainium = (completed.filter(accelerator_family=family).height for family in ("gpu", "trainium"))
    raise UsageError(
        f"{workload} is not compared: it has {counted(gpu, 'completed run')} on GPU and {trainium} on Trainium, "
        "and needs one on each, on one instance type and in one currency; detail_comparison_near_miss lists runs that "
        "almost match."
    )


def ways_of(marts: Engine, model: str | None) -> pl.DataFrame:
    """The rows of mart_serving_comparison, of all models for None; UsageError where there are none.

    `model` is a name, or a part of one or several.
    """
    rows = marts.query(
        "select * from mart_serving_comparison order by billing_currency, baseline_cost_per_month_usd desc nulls last, "
        "model, baseline_platform, baseline_tier nulls first, candidate_platform nulls last, "
        "candidate_cost_per_month_usd"
    )
    if model is not None:
        rows = rows.filter(pl.col("model").str.to_lowercase().str.contains(model.lower(), literal=True))
    if rows.is_empty():
        unknown = "No model is served" if model is None else f"Model {model!r} is not served"
        raise UsageError(f"{unknown} on this bill; mart_inference_cost_daily lists the served models.")
    return rows


def show_ways(rows: pl.DataFrame, console: Console) -> None:
    """One block per way: both sides, then the crossover, the verdict and what is missing."""
    for number, row in enumerate(rows.iter_rows(named=True)):
        other = f"{_way(row, 'candidate')} instead" if row["candidate_platform"] else "no other way known"
        sides = f"today: {_way(row, 'baseline')}", other
        show_block(number, row["model"], sides, _figures(row), _sentences(row), console)


def _figures(row: Row) -> Lines:
    """A line per figure, today next to the other way."""
    amounts = {"a month": ("cost_per_month_usd", cents), "per million tokens": ("cost_per_million_total_usd", unit_usd)}
    return [
        (label, *(amount(row, f"{side}_{name}", form) for side in SIDES)) for label, (name, form) in amounts.items()
    ]


def _way(row: Row, side: str) -> str:
    model = (
        "" if side == "baseline" or row["candidate_model"] in (None, row["model"]) else f"{row['candidate_model']}, "
    )
    tier = row["baseline_tier"] if side == "baseline" else None
    return model + (row[f"{side}_instance_type"] or str(row[f"{side}_platform"])) + (f", {tier}" if tier else "")


def _sentences(row: Row) -> Iterator[str]:
    if row["tokens_per_month"] is None:
        yield "Traffic:   unknown."
    else:
        days = counted(row["day_count"], "day")
        yield f"Traffic:   {large(row['tokens_per_month'])} tokens a month, the mean of {days}."
    if row["crossover_tokens_per_month"] is not None:
        used = row["crossover_utilization_ratio"]
        of_capacity = "" if used is None else f", {percent(used)} of its capacity"
        rate = f" or {figure(row['break_even_tokens_per_second'])} a second" if row["baseline_tier"] else ""
        yield (
            f"Crossover: {large(row['crossover_tokens_per_month'])} tokens a month{rate}, "
            f"{figure(row['traffic_multiple'])} times today's traffic{of_capacity}."
        )
    yield f"Verdict:   {row['verdict']}: {row['verdict_reason']}."
    if row["payback_months"] and row["port_cost_usd"]:
        yield f"Port:      {amount(row, 'port_cost_usd', cents)}, paid back in {figure(row['payback_months'])} months."
    yield f"Prices:    of {day(row['price_date'])}{'; ' + row['candidate_source'] if row['candidate_source'] else ''}."
    if row["missing_evidence"] and row["missing_evidence"] not in row["verdict_reason"]:
        yield f"Missing:   {row['missing_evidence']}."
