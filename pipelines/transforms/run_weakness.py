"""What weakens a comparison of a run, whatever its figures are, each in a sentence."""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime, timedelta
from math import fsum

from pipelines.analysis.matched import Run
from pipelines.transforms import Row, Rows, run_discount

# Idle time before a machine joins its run that is not its boot, and the least share of the run's cost it is.
JOIN_GRACE, _LEAST_SHARE = timedelta(minutes=5), 0.05
_NONE = timedelta(0)
# Hours in which a machine of a run stood idle, and recorded time that is not on the bill, with the newest hour of the
# bill: what a run did after it may be billed yet. Runs whose first attempt
# restores what they did not save before (MLPerf logs call the staging of data so), and the epochs and tokens of runs.
QUERIES = run_discount.QUERIES | {
    "fct_ledger_piece": """
        select resource_id, hour_started_at, sum(effective_cost_usd) as idle_usd,
            sum(accelerator_hours) as idle_accelerator_hours
        from fct_ledger_piece
        where bucket = 'idle' and piece_kind = 'instance_hour'
            and resource_id in (select resource_id from stg_tracker__resource)
        group by all""",
    "detail_claim_gap_monthly": """
        select run_id, sum(gap_hours) as gap_hours, max(billing_currency) as billing_currency,
            case when count(cost_at_stake_usd) = count(*) and count(distinct billing_currency) = 1
                then sum(cost_at_stake_usd) end as cost_at_stake_usd,
            (select max(newest_usage_at) from fct_invoice_monthly) as newest_usage_at
        from detail_claim_gap_monthly
        where gap_kind = 'claimed_not_billed'
        group by run_id""",
    "stg_tracker__phase": """
        select distinct phase.run_id
        from stg_tracker__phase as phase
        join (select run_id, min(attempt_no) as attempt_no from stg_tracker__attempt group by run_id) as first
            on first.run_id = phase.run_id and first.attempt_no = phase.attempt_no
        join stg_tracker__run as run on run.run_id = phase.run_id
        left join (select run_id, min(durable_at) as durable_at from stg_tracker__checkpoint group by run_id) as saved
            on saved.run_id = phase.run_id and saved.durable_at <= phase.started_at
        where phase.phase = 'restore' and saved.run_id is null and coalesce(run.source_system, '') <> 'mllog'""",
    # Hours of runs that only tags join to machines, in which none of these is on the bill.
    "stg_tracker__attempt": """
        select attempt.run_id, greatest(attempt.started_at, attempt.hour_at) as started_at,
            least(attempt.ended_at, attempt.hour_at + interval 1 hour) as ended_at
        from (select *, unnest(generate_series(date_trunc('hour', started_at), ended_at, interval 1 hour)) as hour_at
            from stg_tracker__attempt) as attempt
        semi join fct_run_machine as machine on machine.run_id = attempt.run_id
        anti join stg_tracker__resource as known on known.run_id = attempt.run_id
        anti join (select share.run_id, share.hour_started_at
            from fct_resource_share_hourly as share
            join fct_run_machine as machine
                on machine.run_id = share.run_id and machine.resource_id = share.resource_id) as billed
            on billed.run_id = attempt.run_id and billed.hour_started_at = attempt.hour_at""",
    "stg_tracker__checkpoint": "select distinct run_id, tokens_seen from stg_tracker__checkpoint where tokens_seen > 0",
    "stg_tracker__epoch": """
        select run_id, epoch_index, max(fraction) as fraction, max(tokens_seen) as tokens_seen
        from stg_tracker__epoch
        group by run_id, epoch_index""",
}


def weaknesses(run: Run, stays: Rows, on_machine: Mapping[str, Rows], idle: Mapping[str, Rows]) -> Iterator[str]:
    """What `run`, its `stays`, all stays of its machines and their idle hours show."""
    run_id, begun = run["run_id"], run["started_at"]
    if run["purpose"] == "compile_only":
        has_trained = run["epoch_completed_count"] or run["tokens_seen_count"] or run["evaluations"]
        yield (
            f"run {run_id} is labeled compile_only but trained: it counts as failed"
            if has_trained
            else f"no billed run loads the graphs compiled by run {run_id}: it counts as failed"
        )
    if run["status"] == "unknown" and run["target_duration_ms"] is None:
        end = "has no recorded end" if run["is_end_inferred"] else "has an unknown end"
        yield f"run {run_id} {end}: it counts as failed"

    def free_hours(machine: str, count: int | None, since: datetime, until: datetime) -> float:
        """The hours of the whole machine between two moments that no other run claims."""
        others = (stay for stay in on_machine[machine] if stay["run_id"] != run_id)
        claimed = fsum(
            _hours(max(stay["joined_at"], since), min(stay["left_at"], until))
            * ((stay["accelerators_used"] or count or 1) / (count or 1))
            for stay in others
        )
        return _hours(since, until) - claimed

    for stay in stays:
        machine, used, whole = stay["resource_id"], stay["accelerators_used"], stay["accelerator_count"]
        if used and whole and used < whole:
            since, until = stay["joined_at"], stay["left_at"]
            own = _hours(since, until) * used
            unused = whole * free_hours(machine, whole, since, until) - own
            if unused > _LEAST_SHARE * own:
                yield (
                    f"run {run_id} used {used} of the {whole} accelerators of {machine}, and no run used the others "
                    f"for {unused:,.1f} accelerator hours: their cost is idle and not compared"
                )
                break
    counts = {stay["resource_id"]: stay["accelerator_count"] for stay in stays}

    def idle_usd(machine: str, since: datetime, until: datetime) -> float:
        """The most that the machine can have idled between two moments, of what it idled in each hour."""
        usd = 0.0
        for hour in idle.get(machine, ()):
            begins, ends = max(hour["hour_started_at"], since), min(hour["hour_started_at"] + timedelta(hours=1), until)
            idle_hours = float(hour["idle_accelerator_hours"] or 0) / (counts[machine] or 1)
            if begins < ends and (free := free_hours(machine, counts[machine], begins, ends)) > 0:
                usd += float(hour["idle_usd"] or 0) * (min(free / idle_hours, 1) if idle_hours > 0 else 1)
        return usd

    # Corrections may be more than a run cost.
    least_usd = _LEAST_SHARE * max(float(run["costs"]["effective"][0] or 0), 0.0)
    joins: dict[str, datetime] = {}
    for stay in stays:
        joins[stay["resource_id"]] = min(stay["joined_at"], joins.get(stay["resource_id"], stay["joined_at"]))
    for machine, at in joins.items():
        if at - begun <= JOIN_GRACE:
            continue
        usd = idle_usd(machine, begun, at)
        if usd > least_usd:
            yield (
                f"{machine} joined run {run_id} {(at - begun).total_seconds() / 60:.0f} minutes after its "
                f"start, and {run['billing_currency']} {usd:,.2f} of idle time before that are not compared"
            )
            break
    found: list[tuple[float, str]] = []
    for machine, since, until, words in _absences(run, stays):
        minutes = (until - since).total_seconds() / 60
        found.append(
            (idle_usd(machine, since, until), f"{machine} left run {run_id} {minutes:.0f} minutes before {words}")
        )
    usd = sum(usd for usd, _ in found)
    if usd > least_usd:
        idled = f"{run['billing_currency']} {usd:,.2f} of idle time after that"
        yield f"{max(found)[1]}, and {idled} are not compared"


def _absences(run: Run, stays: Rows) -> Iterator[tuple[str, datetime, datetime, str]]:
    """When each machine was away from the run that it had joined: until it came back, or the work was done."""
    done, words = run["target_at"] or run["ended_at"], "its target" if run["target_at"] else "its end"
    for machine in dict.fromkeys(stay["resource_id"] for stay in stays):
        own = sorted((stay["joined_at"], stay["left_at"]) for stay in stays if stay["resource_id"] == machine)
        since = own[0][1]
        for joined_at, left_at in [*own[1:], (done, done)]:
            until = min(joined_at, done)
            if until - since > JOIN_GRACE:
                yield machine, since, until, "it came back" if until < done else words
            since = max(since, left_at)


def _hours(since: datetime, until: datetime) -> float:
    return max(until - since, _NONE) / timedelta(hours=1)


def overbookings(run_id: str, hours: Rows) -> Iterator[str]:
    """That other runs claim the same accelerators; `hours` has a row per machine with the count of such hours."""
    row = max(hours, key=lambda row: row["hour_count"], default=None)
    if row and (count := row["hour_count"]):
        yield (
            f"run {run_id} and others claim more of {row['resource_id']} than it has in {count} "
            f"hour{'s' * (count != 1)}: its cost is not certain"
        )


def warm_starts(run: Run, restores: Rows, came_from: str | None) -> Iterator[str]:
    """That a run without a recorded base checkpoint begins from one; `restores` has a row if so. Or that it `came_from`
    a checkpoint that several runs gave the same name."""
    # Some count epochs from 0.
    first_epoch = min(run["epochs"], default=1)
    if run["base_checkpoint_id"] is None and (restores or first_epoch > 1):
        first = "a restore" if restores else f"epoch {first_epoch}"
        yield f"run {run['run_id']} begins with {first} and records no base checkpoint: it may not start from nothing"
    if came_from and run["base_checkpoint_id"] == came_from != run["parent_run_id"]:
        several = f"several runs saved a checkpoint {came_from}: which it continues is unknown"
        yield f"run {run['run_id']} records no parent, and {several}"


def unbilled(run_id: str, gaps: Rows) -> Iterator[str]:
    """That the run recorded time of its machines that the bill does not have; `gaps` has a row if there is any."""
    for gap in gaps:
        usd = gap["cost_at_stake_usd"]
        dollars = "" if usd is None else f", about {gap['billing_currency']} {float(usd):,.2f}"
        yield (
            f"run {run_id} recorded {gap['gap_hours']:,.1f} hours of its accelerators that are not on the "
            f"bill{dollars}: its cost is not certain"
        )


def uncertain(
    run: Run,
    shared: Mapping[str, Rows],
    blocks: Mapping[str, Rows],
    gaps: Mapping[str, Rows],
    unmet: Mapping[str, Rows],
) -> Iterator[str]:
    """Why the cost of a run on the bill may be incomplete, or include that of others."""
    run_id = run["run_id"]
    yield from overbookings(run_id, shared.get(run_id, []))
    if run.get("is_free"):
        # On a dedicated host, the host is what costs.
        yield f"the machines of run {run_id} cost nothing on the bill: its cost is not certain"
    for row in blocks.get(run_id, []):
        yield f"the window of {row['block_id']} is unknown, so its fee may be charged to too few hours"
    yield from unbilled(run_id, gaps[run_id]) if run_id in gaps else uncovered(run, unmet.get(run_id, []))


def uncompiled(
    about: Row, described: Mapping[str, Row], billed: Set[str], *records: Mapping[str, Rows]
) -> Iterator[str]:
    """That the cost of the run which compiled what a run loads is not in its cost; `records` as of `uncertain`."""
    if (compiler := about["compile_run_id"]) in (None, about["run_id"]):
        return
    made = described.get(compiler)
    if made is None:
        lacks = "of which nothing is recorded"
    elif made["purpose"] != "compile_only" and made["workload_id"] != about["workload_id"]:
        lacks = "which is not labeled compile_only"
    elif compiler in billed:
        yield from (
            f"run {about['run_id']} loads graphs compiled by run {compiler}; {why}" for why in uncertain(made, *records)
        )
        return
    else:
        lacks = "which is not on the bill"
    yield f"run {about['run_id']} loads graphs compiled by run {compiler}, {lacks}: its cost is not certain"


def uncovered(run: Run, hours: Rows) -> Iterator[str]:
    """That no machine of the run is on the bill while it worked; `hours` has a row for each part of such an hour."""
    done = run.get("target_at") or run["ended_at"]
    without = sum((max(min(hour["ended_at"], done) - hour["started_at"], _NONE) for hour in hours), _NONE)
    if without > JOIN_GRACE:
        yield (
            f"{without / timedelta(hours=1):,.1f} hours of run {run['run_id']} have no machine on the bill: its cost "
            "is not certain"
        )
