"""Run events: JSON lines written by the training processes themselves, one file a process, any folder depth.

Every rank may record the same events, in any order and over any number of files: a repeated event counts once.
A resource's stay, a phase, an epoch, a checkpoint or an evaluation is identified by its keys, not by its text.
"""

from __future__ import annotations

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.event_fields import FIELDS, clock
from pipelines.ingest.runs.event_log import NO_ATTEMPT, SUFFIXES, EventLog, event_files
from pipelines.ingest.runs.event_progress import checkpoints, epochs, evaluations
from pipelines.ingest.runs.event_span import spans
from pipelines.ingest.runs.records import SCHEMAS, RunRecords, listed_state, open_run_store

state = listed_state

# Best first (facts training-runs 1.13): of several events the best evidence counts.
_EVIDENCE = ("imds", "api", "nodemap", "tag", "type_match")
_RUN, _ATTEMPT = ["run_id"], ["run_id", "attempt_no"]


def read(source: RunSource) -> RunRecords:
    """The runs of all event files of a source. An end that was not recorded stays null."""
    store = open_run_store(source)
    objects, others = event_files(store)
    suffixes = ", ".join(SUFFIXES)
    if others and not objects:
        raise SourceError(f"{store.location} holds no event file, only such as {others[0]}; name them {suffixes}.")
    log = EventLog(store)
    log.read(objects)
    warnings = log.warnings()
    if not objects:
        warnings.append(f"{store.location} is empty: no run is recorded there yet.")
    if others:
        warnings.append(f"{store.location}: {len(others)} files like {others[0]} are skipped; events are {suffixes}.")
    attempts = _attempts(log)
    tables = {
        "tracker_run": _runs(log, attempts, warnings),
        "tracker_attempt": attempts,
        "tracker_resource": _resources(log, warnings),
        "tracker_phase": _phases(log, warnings),
        "tracker_epoch": epochs(log),
        "tracker_checkpoint": checkpoints(log, warnings),
        "tracker_evaluation": evaluations(log),
    }
    typed = {
        table: frame.with_columns(source_name=pl.lit(source.name))
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS[table].items())
        .sort(pl.all(), nulls_last=True)
        for table, frame in tables.items()
    }
    return RunRecords(typed, sorted(warnings))


def _runs(log: EventLog, attempts: pl.DataFrame, warnings: list[str]) -> pl.DataFrame:
    fields = list(FIELDS["run_started"])
    started = (
        log.ordered("run_started")
        .group_by(_RUN)
        .agg(pl.col("at", *fields).first(ignore_nulls=True))
        .rename({"at": "started_at"})
    )
    ended = (
        log.ordered("run_ended")
        .group_by(_RUN)
        .agg(pl.col("at", "status", "file_no", "line_no").last(ignore_nulls=True))
        .rename({"at": "ended_at"})
    )
    begun = attempts.group_by(_RUN).agg(begun_at=pl.col("started_at").max())
    run = (
        log.seen()
        .group_by(_RUN)
        .agg(last_seen_at=pl.col("last_at").max())
        .join(started, on=_RUN, how="left")
        .join(ended, on=_RUN, how="left")
        .join(begun, on=_RUN, how="left")
        .with_columns(source_system=pl.lit("events"))
    )
    _refuse_early_end(log, run, "run {run_id!r}")
    unknown = run.filter(pl.col("started_at").is_null())["run_id"].sort()
    warnings += [f"Run {name!r} has no run_started event: its model and dataset are unknown." for name in unknown]
    # A run that continues after its recorded end is open again.
    return _reopened(run, pl.col("begun_at"), "status")


def _attempts(log: EventLog) -> pl.DataFrame:
    seen = log.seen()
    numbered = seen.filter(pl.col("attempt_no") != NO_ATTEMPT)
    # A run without attempts had one; the first attempt begins with the run unless it has its own start.
    silent = seen.join(numbered, on="run_id", how="anti").with_columns(attempt_no=pl.lit(1, pl.Int64))
    is_first = pl.col("attempt_no") == pl.col("attempt_no").min().over("run_id")
    alive = (
        pl.concat([numbered, silent])
        .join(seen.group_by("run_id").agg(run_at=pl.col("first_at").min()), on="run_id")
        .with_columns(first_at=pl.when(is_first).then("run_at").otherwise("first_at"))
    )
    started = (
        log.frame("attempt_started")
        .group_by(_ATTEMPT)
        .agg(started_at=pl.col("at").min(), restarted_at=pl.col("at").max())
    )
    # The attempt ends with its last rank, for the reason of the first rank that failed.
    reason = pl.col("reason")
    ended = (
        log.ordered("attempt_ended")
        .group_by(_ATTEMPT)
        .agg(
            pl.col("at", "file_no", "line_no").last(ignore_nulls=True),
            end_reason=pl.coalesce(
                reason.filter(reason != "completed").first(ignore_nulls=True), reason.first(ignore_nulls=True)
            ),
        )
        .rename({"at": "ended_at"})
    )
    attempt = (
        alive.join(started, on=_ATTEMPT, how="left")
        .join(ended, on=_ATTEMPT, how="left")
        .with_columns(started_at=pl.coalesce("started_at", "first_at"), last_seen_at=pl.col("last_at"))
    )
    _refuse_early_end(log, attempt, "attempt {attempt_no} of run {run_id!r}")
    return _reopened(attempt, pl.col("restarted_at"), "end_reason")


def _resources(log: EventLog, warnings: list[str]) -> pl.DataFrame:
    facts = [name for name in FIELDS["resource_joined"] if name not in ("resource", "accelerators_used", "evidence")]
    return spans(
        log,
        "resource",
        "resource_joined",
        "resource_left",
        warnings,
        [
            pl.col(*facts).first(ignore_nulls=True),
            pl.col("accelerators_used").max(),
            pl.col("evidence").replace_strict(_EVIDENCE, range(len(_EVIDENCE)), return_dtype=pl.Int64).min(),
        ],
    ).select(
        *_ATTEMPT,
        *facts,
        "accelerators_used",
        pl.col("resource").alias("resource_id"),
        pl.col("region").alias("region_id"),
        pl.col("opened_at").alias("joined_at"),
        pl.col("closed_at").alias("left_at"),
        pl.col("evidence").fill_null(0).replace_strict(range(len(_EVIDENCE)), _EVIDENCE, return_dtype=pl.String),
    )


def _phases(log: EventLog, warnings: list[str]) -> pl.DataFrame:
    # A phase that starts ends the one before it.
    found = spans(log, "phase", "phase_started", "phase_ended", warnings, [], take_turns=True)
    return found.rename({"opened_at": "started_at", "closed_at": "ended_at"})


def _refuse_early_end(log: EventLog, found: pl.DataFrame, what: str) -> None:
    for row in found.filter(pl.col("ended_at") < pl.col("started_at")).sort("file_no", "line_no").iter_rows(named=True):
        raise SourceError(
            f"{log.place(row['file_no'], row['line_no'])} has `at` {clock(row['ended_at'])}: "
            f"{what.format(**row)} ends before it starts at {clock(row['started_at'])}; fix the times."
        )


def _reopened(found: pl.DataFrame, went_on_at: pl.Expr, why: str) -> pl.DataFrame:
    is_open = (went_on_at > pl.col("ended_at")).fill_null(False)
    return found.with_columns(pl.when(~is_open).then(pl.col(name)).alias(name) for name in ("ended_at", why))
