"""Each declared port, measured by the bill and the comparison: costs so far, saving of a run, how often it runs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl

from pipelines.analysis.break_even import Case
from pipelines.transforms import Frames, Row
from pipelines.transforms.detail_run_job import job_counts
from pipelines.transforms.run_pair import PAIR_KEY

# Ports are declared in USD, so only bills in USD are compared with them.
CURRENCY = "USD"
BASIS = "effective"
INPUTS = (
    "declared_port", "declared_port_run", "mart_silicon_comparison", "detail_compared_run", "fct_run",
    "detail_run_job", "stg_proof__registration", "fct_invoice_monthly",
)  # fmt: skip
KINDS = ("pilot", "validation", "failed_pair")
_TYPES = ("baseline_instance_type", "candidate_instance_type")
MONTH_DAYS = 365.25 / 12
# How far back runs are counted for the cadence, and the least time they are counted over.
_WINDOW, _LEAST = timedelta(days=90), timedelta(days=MONTH_DAYS)


@dataclass
class PortCase:
    """A port as declared and measured; `case` is None where its cost, saving or cadence is unknown.

    `run_ids` are the runs that are part of its cost; `gaps` names what the bill lacks of it.
    """

    port: Row
    costs: dict[str, float | None]
    run_ids: list[str] = field(default_factory=list)
    pair: Row | None = None
    baseline: float | None = None
    candidate: float | None = None
    low: float | None = None
    high: float | None = None
    saving_evidence: str | None = None
    runs_per_month: float | None = None
    cadence_evidence: str | None = None
    gaps: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def port_cost(self) -> float | None:
        """USD of the port in all; None where a part is unknown."""
        known = [usd for usd in self.costs.values() if usd is not None]
        return sum(known) if len(known) == len(self.costs) else None

    @property
    def case(self) -> Case | None:
        """The port as analysis/break_even.py takes it."""
        cost = self.port_cost
        if cost is None or self.baseline is None or self.candidate is None or self.runs_per_month is None:
            return None
        port = self.port
        return Case(
            port_cost=cost,
            baseline=self.baseline,
            saving_per_run=self.baseline - self.candidate,
            runs_per_month=self.runs_per_month,
            months=port["horizon_months"],
            upkeep=float(port["upkeep_usd_per_month"]),
            discount=port["discount_ratio"],
            baseline_price_fall_ratio=port["baseline_price_fall_ratio"],
            success_ratio=port["success_ratio"],
        )


def port_cases(table: Frames) -> Iterator[PortCase]:
    """Every port, by name; `table` has the frames of INPUTS by name."""
    done, fct_run = compared_units(table), table["fct_run"]
    for port in table["declared_port"].sort("port_name").iter_rows(named=True):
        own = table["declared_port_run"].filter(port_name=port["port_name"]).select("run_id", "port_cost_kind")
        own = pl.concat([own, _failed_pairs(port, own, table)])
        engineering, further = port["engineer_days"] * float(port["day_rate_usd"]), float(port["further_cost_usd"])
        costs = {"engineering": engineering, **dict.fromkeys(KINDS, 0.0), "further": further}
        found = PortCase(port, costs, own["run_id"].to_list())
        _add_runs(found, own, fct_run)
        _add_saving(found, table["mart_silicon_comparison"], done)
        jobs = table["detail_run_job"].select("run_id", "job_id")
        others = fct_run.join(own, on="run_id", how="anti").join(jobs, on="run_id", how="left")
        _add_cadence(found, others, newest_usage(table, CURRENCY))
        yield found


def compared_units(table: Frames) -> pl.DataFrame:
    """The compared jobs of each pair with the units of work they did."""
    compared = table["detail_compared_run"].filter(comparison_part="compared", cost_basis=BASIS)
    jobs = compared.join(job_counts(table["detail_run_job"]), on=["run_id", "unit_measure"])
    return jobs.unique([*PAIR_KEY, "job_id"]).rename({"job_count": "unit_count"})


def best_pair(comparison: pl.DataFrame, workload_id: str, currency: str, basis: str = BASIS) -> Row | None:
    """The workload's pair with the most runs on its lesser side, one that claims a saving before one that does not.

    A candidate that costs more than some baseline machine is held against that one.
    """
    pairs = (
        comparison.filter(workload_id=workload_id, cost_basis=basis, billing_currency=currency)
        .with_columns(
            least=pl.min_horizontal("baseline_run_count", "candidate_run_count"),
            claims=pl.col("saving_ratio").is_not_null() & (pl.col("verdict") != "not comparable"),
        )
        .sort(
            "claims",
            pl.col("cheaper_baseline_instance_type").is_null(),
            "least",
            *_TYPES,
            descending=[True, True, True, False, False],
        )
    )
    return pairs.row(0, named=True) if pairs.height else None


def units_of(pair: Row, done: pl.DataFrame) -> float | None:
    """Units of work a compared job of the pair does, on average; `done` has those jobs with their units."""
    own = done.filter(**{name: pair[name] for name in PAIR_KEY}).sort("job_id")["unit_count"]
    return sum(map(float, own)) / len(own) if len(own) else None


def newest_usage(table: Frames, currency: str) -> datetime | None:
    """The newest hour of usage on any bill in the currency."""
    bill = table["fct_invoice_monthly"].filter(billing_currency=currency)
    return max(bill["newest_usage_at"].drop_nulls(), default=None)


def runs_per_month(runs: pl.DataFrame, newest: datetime | None) -> float | None:
    """Completed runs a month over the 90 days before the newest usage, or since the first one, a month at least.

    0 if training has stopped before them, None if no run ever completed. Run ids of one job are one run; `job_id` is
    null where detail_run_job lacks the run.
    """
    # What only compiles or evaluates serves other runs.
    serves = pl.col("purpose").fill_null("").is_in(["compile_only", "eval_only"])
    done = runs.filter(~serves, status="completed").drop_nulls(["started_at", "ended_at"])
    if not done.height:
        return None
    times = pl.col("started_at").min(), pl.col("ended_at").max()
    done = done.group_by(pl.coalesce("job_id", "run_id")).agg(times)
    until: datetime = max(*done["ended_at"], newest or datetime.min)
    oldest: datetime = min(done["started_at"])
    recent = done.filter(pl.col("ended_at") > until - _WINDOW).height
    return recent / (min(max(until - oldest, _LEAST), _WINDOW) / _LEAST)


def _failed_pairs(port: Row, own: pl.DataFrame, table: Frames) -> pl.DataFrame:
    """Trainium runs since the port began of pairs that missed their quality, and GPU runs registered as their partners.

    Other GPU runs made models that are used. A run with which another pair met its quality is no failure, and a
    declared cost kind of a run stays.
    """
    is_ports = {"workload_id": port["workload_id"], "billing_currency": CURRENCY, "cost_basis": BASIS}
    pairs = table["mart_silicon_comparison"].filter(**is_ports)
    counts = pl.col("comparison_part").is_in(["compared", "failed"])
    runs = table["detail_compared_run"].filter(counts, accelerator_family="trainium")
    missed, met = (
        runs.join(pairs.filter(quality_status=status), on=[*PAIR_KEY, "cost_basis"], how="semi")
        .select("run_id")
        .unique()
        for status in ("missed", "met")
    )
    begun = table["fct_run"].filter(pl.col("started_at").dt.date() >= port["started_date"])
    failed = missed.join(met, on="run_id", how="anti").join(begun, on="run_id", how="semi")
    partners = table["stg_proof__registration"].drop_nulls("pair_no")
    of_failed = partners.join(failed, on="run_id", how="semi")
    paired = partners.join(of_failed, on=["registration", "pair_no"], how="semi").select("run_id")
    every = pl.concat([failed, paired]).unique().join(own, on="run_id", how="anti")
    return every.select("run_id", port_cost_kind=pl.lit("failed_pair"))


def _add_runs(found: PortCase, own: pl.DataFrame, fct_run: pl.DataFrame) -> None:
    """What the port's own runs cost, each once, from the bill; unknown where it lacks one of them or a part."""
    once = own.sort("port_cost_kind").unique("run_id", keep="first")
    billed = once.join(fct_run, on="run_id", how="left").sort("port_cost_kind", "run_id")
    for run in billed.iter_rows(named=True):
        kind = run["port_cost_kind"]
        so_far = found.costs[kind]
        if run["effective_cost_usd"] is None or run["billing_currency"] != CURRENCY:
            found.costs[kind] = None
            found.gaps.append(f"no bill in {CURRENCY} has the {kind.replace('_', ' ')} run {run['run_id']}")
        elif run["unbilled_hours"]:
            found.costs[kind] = None
            found.gaps.append(f"the bill has the {kind.replace('_', ' ')} run {run['run_id']} in part only")
        elif so_far is not None:
            found.costs[kind] = so_far + float(run["effective_cost_usd"])
    found.missing += found.gaps


def _add_saving(found: PortCase, comparison: pl.DataFrame, done: pl.DataFrame) -> None:
    """What a run costs on either side: as compared on the bill, else as planned."""
    port = found.port
    pair = best_pair(comparison, port["workload_id"], CURRENCY)
    units = units_of(pair, done) if pair and pair["claims"] else None
    if pair and units:
        found.pair = pair
        found.baseline = float(pair["baseline_unit_cost_usd"]) * units
        found.candidate = found.baseline * (1 - float(pair["saving_ratio"]))
        found.saving_evidence = "indicative" if pair["verdict"] == "indicative" else "measured"
        if pair["saving_low_ratio"] is not None and pair["saving_high_ratio"] is not None:
            found.low, found.high = (found.baseline * float(pair[f"saving_{end}_ratio"]) for end in ("low", "high"))
    elif port["planned_baseline_cost_per_run_usd"] is not None and port["planned_saving_ratio"] is not None:
        found.baseline = float(port["planned_baseline_cost_per_run_usd"])
        found.candidate = found.baseline * (1 - port["planned_saving_ratio"])
        found.saving_evidence = "planned"
        found.missing.append("what a run saves is planned, not measured: run a pilot")
    else:
        found.missing.append("nothing compares the two sides of the workload, and nothing is planned: run a pilot")


def _add_cadence(found: PortCase, runs: pl.DataFrame, newest: datetime | None) -> None:
    """As measured, else as declared."""
    measured = runs_per_month(runs.filter(workload_id=found.port["workload_id"]), newest)
    if measured is not None:
        found.runs_per_month, found.cadence_evidence = measured, "measured"
    elif found.port["runs_per_month"] is not None:
        found.runs_per_month, found.cadence_evidence = found.port["runs_per_month"], "planned"
    else:
        found.missing.append("no completed run shows how often it runs, and nothing is planned")
