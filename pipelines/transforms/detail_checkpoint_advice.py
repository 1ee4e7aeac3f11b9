"""One row per run: how far apart its checkpoints were, what that cost, and the distances the rules advise.

Pure Polars over run-sized frames, then one calculation a run. A run's history is its own attempts; one that was
never interrupted takes the rate of all runs of its workload on its instance type, and where none of those was
interrupted either a published one. Restarts cost the same at any distance and are in no cost here.
"""

import polars as pl

from pipelines.analysis import checkpoint_interval as rules
from pipelines.transforms import Row, Rows, quotient
from pipelines.transforms.attempt_phase import durable_checkpoints, timed_phases, working_time

INPUTS = ("fct_run", "stg_tracker__attempt", "stg_tracker__resource", "stg_tracker__phase", "stg_tracker__checkpoint")
# These ends are known beforehand; every other one interrupts.
FORESEEN_ENDS = ("completed", "user_stop", "timeout", "capacity_block_end")
# Spot gives two minutes of notice: a save in that time was made for it (facts training-runs 1.13).
NOTICE_MS = 120_000
# Llama 3 405B: 419 unexpected interruptions in 54 days of 2048 nodes with 8 H100 each (facts training-runs 5).
DEFAULT_NODE_SECONDS = 54 * 86_400 * 2048 / 419
_OF_RUN, _OF_ATTEMPT, _POOL = ["run_id"], ["run_id", "attempt_no"], ["workload_id", "instance_type"]
_OF_THE_RUN = (
    "run_id", "workload_id", "billing_currency", "accelerator_family", "instance_type", "status", "team", "owner",
)  # fmt: skip


def build(**table: pl.DataFrame) -> Rows:
    """Advice by run; null where the run's records do not measure what a figure needs."""
    saved = durable_checkpoints(table["stg_tracker__checkpoint"])
    attempt = _attempts(table["stg_tracker__attempt"], table["stg_tracker__phase"], saved)
    stay = (pl.col("left_at") - pl.col("joined_at")).dt.total_milliseconds()
    node_seconds = table["stg_tracker__resource"].group_by(_OF_RUN).agg(node_seconds=stay.sum() / 1000)
    history = (
        table["fct_run"]
        .select(*_OF_THE_RUN, "effective_cost_usd", "lost_work_cost_usd", "checkpoint_durable_count")
        .with_columns(pl.col("effective_cost_usd", "lost_work_cost_usd").cast(pl.Float64))
        .join(_history(attempt), on="run_id", how="left")
        .join(node_seconds.filter(pl.col("node_seconds") > 0), on="run_id", how="left")
        .join(_saves(attempt, saved), on="run_id", how="left")
        .with_columns(
            pl.col("interruption_count", "noticed_count").fill_null(0),
            pl.when(pl.col("checkpoint_durable_count").is_not_null()).then(pl.col("save_count").fill_null(0)),
        )
        .with_columns(
            (pl.col(name).filter(pl.col("node_seconds").is_not_null()).sum().over(_POOL)).alias(f"pool_{name}")
            for name in ("node_seconds", "interruption_count", "noticed_count")
        )
    )
    return [_advice(run) for run in history.sort("run_id").iter_rows(named=True)]


def _attempts(attempt: pl.DataFrame, phase: pl.DataFrame, saved: pl.DataFrame) -> pl.DataFrame:
    """Each attempt's times, whether something interrupted it, and whether it saved upon notice."""
    reason, was_saved = pl.col("end_reason"), pl.col("saved_ms") >= pl.col("ended_ms") - NOTICE_MS
    # An unexplained end interrupted the run if the run went on.
    interrupted = ~reason.is_in(FORESEEN_ENDS) & ((reason != "unknown") | ~pl.col("is_last"))
    timed = working_time(attempt, timed_phases(phase), saved)
    return timed.with_columns(interrupted=interrupted, noticed=interrupted & was_saved.fill_null(False))


def _history(attempt: pl.DataFrame) -> pl.DataFrame:
    trains = pl.coalesce("train_ms", "started_ms").clip(pl.col("started_ms"), pl.col("ended_ms"))
    return attempt.group_by(_OF_RUN).agg(
        interruption_count=pl.col("interrupted").sum().cast(pl.Int64),
        noticed_count=pl.col("noticed").sum().cast(pl.Int64),
        attempt_seconds=(pl.col("ended_ms") - pl.col("started_ms")).sum() / 1000,
        training_seconds=(pl.col("ended_ms") - trains).sum() / 1000,
        restart_seconds=(pl.col("train_ms") - pl.col("started_ms")).median() / 1000,
    )


def _saves(attempt: pl.DataFrame, saved: pl.DataFrame) -> pl.DataFrame:
    begun = attempt.select(*_OF_ATTEMPT, begun_ms=pl.coalesce("train_ms", "started_ms"))
    gap = pl.col("durable_ms") - pl.coalesce(pl.col("durable_ms").shift(1).over(_OF_ATTEMPT), "begun_ms")
    return (
        saved.join(begun, on=_OF_ATTEMPT, how="left")
        .sort("run_id", "attempt_no", "durable_ms")
        .with_columns(gap_seconds=gap / 1000 - pl.col("stall_seconds").fill_null(0))
        .group_by(_OF_RUN)
        .agg(
            save_count=pl.len().cast(pl.Int64),
            save_seconds=pl.col("stall_seconds").median(),
            mean_save_seconds=pl.col("stall_seconds").mean(),
            done_interval_seconds=pl.col("gap_seconds").filter(pl.col("gap_seconds") > 0).median(),
        )
    )


def _advice(run: Row) -> Row:
    basis, between, noticed = _interruptions(run)
    rate = quotient(run["effective_cost_usd"], run["attempt_seconds"])
    save, done, restart = run["save_seconds"], run["done_interval_seconds"], run["restart_seconds"]
    found: Row = {
        **{name: run[name] for name in _OF_THE_RUN},
        "save_count": run["save_count"],
        "save_seconds": save,
        "restart_seconds": restart,
        "interruption_count": run["interruption_count"],
        "node_hours": quotient(run["node_seconds"], 3600),
        "interruption_basis": basis,
        "between_interruptions_seconds": between,
        "noticed_ratio": noticed,
        "cost_per_second_usd": rate,
        "done_interval_seconds": done,
        "missing_evidence": _missing(run, between, rate),
    }
    if rate is not None and save is not None:
        saving = rate * run["mean_save_seconds"] * run["save_count"]
        found["done_cost_usd"] = saving + (run["lost_work_cost_usd"] or 0)
    if not save or between is None:
        return found
    # What a save's requests and bytes cost is on lines no run has a share of: it counts nothing here.
    intervals = {
        "young": rules.young(save, between),
        "daly": rules.daly(save, between),
        "availability": None if restart is None else rules.availability(save, between, restart),
        "dollar": rules.dollar(save, between, rate or 1, 0, noticed),
    }
    found |= {f"{rule}_interval_seconds": interval for rule, interval in intervals.items()}
    if rate is not None:
        # The availability rule's period holds the save itself.
        intervals |= {"done": done, "availability": restart and intervals["availability"] - save}
        whole = rate * run["training_seconds"]
        shares = {
            rule: rules.overhead(interval, save, between, noticed=noticed)
            for rule, interval in intervals.items()
            if interval
        }
        # Where no interval would ever be finished, the cost has no bound.
        found |= {f"{rule}_expected_cost_usd": whole * share for rule, share in shares.items() if share < 1000}
    return found


def _interruptions(run: Row) -> tuple[str | None, float | None, float]:
    """What the rate rests on, the mean seconds between interruptions of the whole run, the share saved upon notice."""
    seconds, count = run["attempt_seconds"], run["interruption_count"]
    # One interruption more than was seen, so that the notice is never trusted fully.
    if seconds and count:
        return "run", seconds / count, run["noticed_count"] / (count + 1)
    if not seconds or not run["node_seconds"]:
        return None, None, 0.0
    nodes = run["node_seconds"] / seconds
    if count := run["pool_interruption_count"]:
        return "workload", run["pool_node_seconds"] / count / nodes, run["pool_noticed_count"] / (count + 1)
    return "default", DEFAULT_NODE_SECONDS / nodes, 0.0


def _missing(run: Row, between: float | None, rate: float | None) -> str | None:
    reasons = [
        (run["save_count"] is None, "no source of the run records checkpoints"),
        (run["save_count"] == 0, "no durable checkpoint was saved"),
        ((run["save_count"] or 0) > 0 and run["save_seconds"] is None, "no save records how long it stopped the run"),
        (run["save_seconds"] == 0, "saves stop nothing, so only storage bounds them"),
        (between is None, "neither nodes nor an interruption are recorded"),
        (rate is None, "no bill line belongs to the run"),
    ]
    return "; ".join(words for holds, words in reasons if holds) or None
