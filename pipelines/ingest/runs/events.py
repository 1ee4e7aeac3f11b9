"""Run events: JSON lines written by the training processes themselves, one file a process, any folder depth.

Every rank may record the same events, in any order and over any number of files: a repeated event counts once.
A resource's stay, a phase, an epoch, a checkpoint or an evaluation is identified by its keys, not by its text.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, date, datetime

import polars as pl

from pipelines.base.errors import SourceError, shown
from pipelines.config.sources import RunSource
from pipelines.ingest.json_lines import SUFFIXES, by_suffix, skipped
from pipelines.ingest.runs.event import FIELDS, clock
from pipelines.ingest.runs.event_log import NO_ATTEMPT, EventLog
from pipelines.ingest.runs.records import SCHEMAS, UNREAD, RunRecords, open_run_store

# Best first (facts training-runs 1.13): of several events the best evidence counts.
_EVIDENCE = ("imds", "api", "nodemap", "tag", "type_match")
_RUN, _ATTEMPT = ["run_id"], ["run_id", "attempt_no"]
# Only a full save can be resumed (facts training-runs 3), unless the event states otherwise.
_IS_RESUMABLE = pl.coalesce("resumable", pl.col("kind").fill_null("full") == "full")
# A restart may run other code.
_OF_ONE_RUN = [name for name in FIELDS["run_started"] if name != "code_revision"]


def read(source: RunSource, today: date | None = None) -> RunRecords:
    """The runs of all event files of a source, as of `today`. An end that was not recorded stays null."""
    store = open_run_store(source)
    objects, others = by_suffix(store.list())
    suffixes = ", ".join(SUFFIXES)
    if others and not objects:
        raise SourceError(f"{store.location} holds no event file, only such as {others[0]}; name them {suffixes}.")
    log = EventLog(store, today or datetime.now(UTC).date())
    log.read(objects)
    tables, warnings, known = {}, [], -1
    while known < len(log.aside):
        # Runs that are set aside on the way leave all tables.
        known, warnings = len(log.aside), []
        tables = _tables(log, warnings)
    warnings += log.warnings()
    tables[UNREAD] = log.unread()
    if not objects:
        warnings.append(
            f"{store.location} is empty: no run is recorded there yet; check `location` if training has run."
        )
    warnings += skipped(store.location, others, f"; name event files {suffixes}")
    typed = {
        # Sorted while run ids are numbers; the source is the same in every row.
        table: frame.sort(*(name for name in SCHEMAS[table] if name in frame.columns), nulls_last=True)
        .with_columns(source_name=pl.lit(source.name))
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS[table].items())
        for table, frame in tables.items()
    }
    return RunRecords(typed, sorted(warnings))


def _tables(log: EventLog, warnings: list[str]) -> dict[str, pl.DataFrame]:
    attempts = _attempts(log)
    return {
        "tracker_run": _runs(log, attempts, warnings),
        "tracker_attempt": attempts,
        "tracker_resource": _resources(log, warnings),
        # A phase that starts ends the one before it.
        "tracker_phase": spans(log, "phase", "phase_started", "phase_ended", warnings, [], turns=True).rename(
            {"opened_at": "started_at", "closed_at": "ended_at"}
        ),
        "tracker_epoch": epochs(log),
        "tracker_checkpoint": checkpoints(log, warnings),
        "tracker_evaluation": evaluations(log),
    }


def _runs(log: EventLog, attempts: pl.DataFrame, warnings: list[str]) -> pl.DataFrame:
    fields = list(FIELDS["run_started"])
    started = log.ordered("run_started").group_by(_RUN)
    ended = log.ordered("run_ended").group_by(_RUN)
    end_facts = pl.col("status", "file_no", "line_no").last(ignore_nulls=True)
    begun = attempts.group_by(_RUN).agg(begun_at=pl.col("started_at").max())
    run = (
        log.seen()
        .group_by(_RUN)
        .agg(last_seen_at=pl.col("last_at").max())
        .join(started.agg(pl.col(*fields).first(ignore_nulls=True), started_at=pl.col("at").first()), _RUN, "left")
        .join(ended.agg(end_facts, ended_at=pl.col("at").last()), _RUN, "left")
        .join(begun, _RUN, "left")
        .with_columns(source_system=pl.lit("events"))
    )
    _set_aside_early_end(log, run, "run {run_id!r}")
    unknown = run.filter(pl.col("started_at").is_null())["run_id"].sort()
    warnings += [
        f"Run {name!r} has no run_started event: its model and dataset are unknown; write one." for name in unknown
    ]
    warnings += _different_starts(started.agg(pl.col(*_OF_ONE_RUN).drop_nulls().unique(maintain_order=True)))
    # A run that continues after its recorded end is open again.
    return _reopened(run, pl.col("begun_at"), "status")


def _different_starts(values: pl.DataFrame) -> Iterator[str]:
    """A warning for each run whose starts differ; `values` has the values of each field in order of time."""
    differs = pl.any_horizontal(pl.col(*_OF_ONE_RUN).list.len() > 1)
    for row in values.filter(differs).sort("run_id").iter_rows(named=True):
        fields = [
            f"{name} {' and '.join(shown(str(value)) for value in row[name][:2])}"
            for name in _OF_ONE_RUN
            if len(row[name]) > 1
        ]
        yield (
            f"Run {row['run_id']!r} was started with different facts, of which the first count: {', '.join(fields)}. "
            "If these are several runs, give each its own run_id."
        )


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
    at = pl.col("at")
    started = log.frame("attempt_started").group_by(_ATTEMPT).agg(started_at=at.min(), restarted_at=at.max())
    # The attempt ends with its last rank, for the reason of the first rank that failed.
    reason = pl.col("reason")
    ended = (
        log.ordered("attempt_ended")
        .group_by(_ATTEMPT)
        .agg(
            pl.col("file_no", "line_no").last(),
            ended_at=at.last(),
            end_reason=pl.coalesce(reason.filter(reason != "completed").first(), reason.first(ignore_nulls=True)),
        )
    )
    attempt = (
        alive.join(started, on=_ATTEMPT, how="left")
        .join(ended, on=_ATTEMPT, how="left")
        .with_columns(started_at=pl.coalesce("started_at", "first_at"), last_seen_at=pl.col("last_at"))
    )
    _set_aside_early_end(log, attempt, "attempt {attempt_no} of run {run_id!r}")
    return _reopened(attempt, pl.col("restarted_at"), "end_reason")


def _resources(log: EventLog, warnings: list[str]) -> pl.DataFrame:
    facts = [name for name in FIELDS["resource_joined"] if name not in ("resource", "accelerators_used", "evidence")]
    kept = [
        pl.col(*facts).first(ignore_nulls=True),
        pl.col("accelerators_used").max(),
        pl.col("evidence").cast(pl.Enum(_EVIDENCE)).min(),
    ]
    evidence = pl.col("evidence").cast(pl.String).fill_null(_EVIDENCE[0])
    names = {"resource": "resource_id", "region": "region_id", "opened_at": "joined_at", "closed_at": "left_at"}
    found = spans(log, "resource", "resource_joined", "resource_left", warnings, kept)
    return found.with_columns(evidence).rename(names)


def _set_aside_early_end(log: EventLog, found: pl.DataFrame, what: str) -> None:
    for row in found.filter(pl.col("ended_at") < pl.col("started_at")).sort("file_no", "line_no").iter_rows(named=True):
        log.aside.setdefault(
            row["run_id"],
            f"{log.place(row['file_no'], row['line_no'])} has `at` {clock(row['ended_at'])}: "
            f"{what.format(**row)} ends before it starts at {clock(row['started_at'])}; fix the times.",
        )


def _reopened(found: pl.DataFrame, went_on_at: pl.Expr, why: str) -> pl.DataFrame:
    is_open = (went_on_at > pl.col("ended_at")).fill_null(False)
    return found.with_columns(pl.when(~is_open).then(pl.col(name)).alias(name) for name in ("ended_at", why))


def spans(
    log: EventLog, key: str, opening: str, closing: str, warnings: list[str], facts: list[pl.Expr], turns: bool = False
) -> pl.DataFrame:
    """One row per stretch of (run_id, attempt_no, `key`): opened_at, closed_at (null while open) and `facts`.

    A stretch takes in every opening until something closes it, and every closing until it opens again. With `turns` it
    also ends where another value of `key` opens in the same attempt. Times are ms since 1970. A run with a thing that
    closes before it opens is set aside; what only closes is skipped, with a warning.
    """
    thing = [*_ATTEMPT, key]
    both = [log.frame(kind).with_columns(closes=pl.lit(kind == closing)) for kind in (opening, closing)]
    events = pl.concat(both, how="diagonal")
    # Files are of one run each, so that events are nearly in the order of their run.
    order = dict.fromkeys((*_ATTEMPT, "at", "closes", key, *events.drop("file_no", "line_no").columns))
    opens = ~pl.col("closes")
    # A stretch begins with the first opening, one after a closing and, by turns, one after another's.
    begins = pl.col("closes").shift(1).over(thing).fill_null(True)
    if turns:
        opened_before = pl.when(opens).then(pl.col(key)).forward_fill().shift(1).over(_ATTEMPT)
        begins |= opened_before.ne_missing(pl.col(key))
    events = (
        events.sort(*order, nulls_last=True)
        .with_columns(begins=opens & begins)
        .with_columns(stretch=pl.col("begins").cast(pl.Int64).cum_sum().over(thing))
    )
    _check_closings(log, events, thing, key, closing, warnings)
    return (
        events.filter(pl.col("stretch") > 0)
        .group_by(*thing, "stretch", maintain_order=True)
        .agg(*facts, opened_at=pl.col("at").filter(opens).min(), closed_at=pl.col("at").filter("closes").max())
        .drop("stretch")
    )


def _check_closings(
    log: EventLog, events: pl.DataFrame, thing: list[str], key: str, closing: str, warnings: list[str]
) -> None:
    opened = events.filter(~pl.col("closes")).group_by(thing).agg(opened_at=pl.col("at").min())
    loose = events.filter(pl.col("stretch") == 0).join(opened, on=thing, how="left").sort("file_no", "line_no")
    for row in loose.filter(pl.col("opened_at").is_not_null()).iter_rows(named=True):
        log.aside.setdefault(
            row["run_id"],
            f"{log.place(row['file_no'], row['line_no'])} has `at` {clock(row['at'])}: {closing} of "
            f"{row[key]!r} in attempt {row['attempt_no']} of run {row['run_id']!r} comes before its start at "
            f"{clock(row['opened_at'])}; fix the times.",
        )
    warnings += [
        f"Run {run!r} attempt {attempt} has {closing} of {name!r} without its start; it is skipped. Write both."
        for run, attempt, name in loose.select(thing).unique().iter_rows()
    ]


def epochs(log: EventLog) -> pl.DataFrame:
    """One row per (run_id, attempt_no, epoch_index); not completed while completed_at is null."""
    epoch = [*_ATTEMPT, "epoch"]
    progress = ("step", "tokens_seen", "samples_seen", "fraction")
    started = log.frame("epoch_started").group_by(epoch, maintain_order=True).agg(started_at=pl.col("at").min())
    # An epoch is complete with its last rank.
    ended = log.frame("epoch_completed").group_by(epoch, maintain_order=True)
    completed = ended.agg(pl.col(*progress).max(), completed_at=pl.col("at").max())
    return completed.join(started, on=epoch, how="full", coalesce=True).rename({"epoch": "epoch_index"})


def checkpoints(log: EventLog, warnings: list[str]) -> pl.DataFrame:
    """One row per (run_id, checkpoint_id); not saved while durable_at is null."""
    saved = _identified(log.frame("checkpoint_saved"), pl.col("kind").fill_null("full"), _IS_RESUMABLE)
    started = _identified(log.frame("checkpoint_started"))
    # A start belongs to the save at its address, and one with only a step to the save at that step.
    of_step = saved.group_by(*_ATTEMPT, "step").agg(saved_id=pl.col("name").min())
    place = [*_ATTEMPT, "step", "uri"]
    of_place = saved.filter(pl.col("checkpoint_id").is_null()).group_by(place).agg(placed_id=pl.col("name").min())
    started = started.join(of_step, on=[*_ATTEMPT, "step"], how="left", nulls_equal=False)
    started = started.join(of_place, on=place, how="left", nulls_equal=False).with_columns(
        name=pl.when(pl.col("checkpoint_id").is_not_null())
        .then("name")
        .when(pl.col("uri").is_null())
        .then(pl.coalesce("saved_id", "name"))
        .otherwise(pl.coalesce("placed_id", "name"))
    )
    begun = started.select(*_ATTEMPT, "name", "step", "uri", save_started_at="at")
    kept = saved.with_columns(
        durable_at=pl.coalesce("durable_at", "at"),
        is_resumable=_IS_RESUMABLE,
        is_complete=pl.col("complete").fill_null(True),
    ).drop("checkpoint_id")
    # What shards at addresses of their own have together; every rank that saves to one address records the same.
    shard = pl.col("bytes").filter(pl.col("uri").is_not_null())
    sizes = (
        kept.group_by(*_ATTEMPT, "name", "uri")
        .agg(pl.col("bytes").max())
        .group_by(*_ATTEMPT, "name")
        .agg(
            pl.when(pl.col("uri").count() < 2)
            .then(pl.col("bytes").max())
            .when(shard.null_count() == 0)
            .then(shard.cast(pl.Int128).sum().cast(pl.Int64, strict=False))
        )
    )
    merged = (
        pl.concat([kept.drop("bytes"), begun], how="diagonal")
        .sort("run_id", "at", "step", "uri", nulls_last=True)
        .group_by(*_ATTEMPT, "name", maintain_order=True)
        .agg(
            pl.col("uri").first(ignore_nulls=True),
            pl.col("step").max(),
            pl.col("save_started_at").min(),
            # Many ranks save shards: the save is durable with the last, complete only if each is.
            pl.col("durable_at", "stall_seconds", "tokens_seen").max(),
            pl.col("is_resumable", "is_complete").min(),
            step_count=pl.col("step").n_unique(),
        )
        .join(sizes, on=[*_ATTEMPT, "name"], how="left", nulls_equal=True, maintain_order="left")
    )
    mixed = merged.filter(pl.col("step_count") > 1).sort("run_id", "name")
    warnings += [
        f"Run {run!r} has checkpoint_id {name!r} for saves of several steps; they count as one checkpoint. "
        "Give each save its own."
        for run, name in mixed.select("run_id", "name").unique(maintain_order=True).iter_rows()
    ]
    # A later attempt saves again what was lost: the last save of a checkpoint counts.
    return (
        merged.sort("run_id", "name", pl.col("durable_at").is_not_null(), "attempt_no")
        .group_by("run_id", "name", maintain_order=True)
        .last()
        .rename({"name": "checkpoint_id"})
    )


def _identified(saves: pl.DataFrame, *kind: pl.Expr) -> pl.DataFrame:
    """Saves with `name`: their id, or one made from run, step and address, the same on every rank.

    Ranks save shards of a step at addresses of their own: the first of these stands for all that are of one `kind`.
    """
    shards = pl.col("uri").filter(pl.col("checkpoint_id").is_null()).min().over(*_ATTEMPT, "step", *kind)
    is_shard = pl.col("checkpoint_id").is_null() & pl.col("step").is_not_null() & pl.col("uri").is_not_null()
    saves = saves.with_columns(own_uri="uri", uri=pl.when(is_shard).then(shards).otherwise("uri"))
    uris = saves["uri"].unique().drop_nulls()
    digests = [hashlib.sha256(uri.encode()).hexdigest()[:12] for uri in uris]
    digest = pl.DataFrame({"uri": uris, "address": digests}, schema={"uri": pl.String, "address": pl.String})
    address = pl.col("address").fill_null("")
    # Without a step or an address, only its time distinguishes a save from the next.
    step = pl.coalesce(pl.col("step").cast(pl.String), pl.when(pl.col("uri").is_null()).then("at").cast(pl.String))
    made = pl.concat_str(pl.col("run_id").cast(pl.String), pl.lit(":"), step.fill_null(""), pl.lit(":"), address)
    named = saves.join(digest, on="uri", how="left", maintain_order="left")
    return named.with_columns(name=pl.coalesce("checkpoint_id", made), uri="own_uri").drop("address", "own_uri")


def evaluations(log: EventLog) -> pl.DataFrame:
    """One row per (run_id, attempt_no, metric, split, evaluated_at), the first record of each step; NaN is null."""
    found = log.ordered("evaluation").rename({"at": "evaluated_at"}).with_columns(pl.col("value").fill_nan(None))
    of_step = [*_ATTEMPT, "metric", "split", "step"]
    once = pl.concat(
        [
            found.filter(pl.col("step").is_not_null()).unique(of_step, keep="first", maintain_order=True),
            found.filter(pl.col("step").is_null()),
        ]
    )
    # One metric has one value at a time; the furthest step is the one it was measured at.
    key = [*_ATTEMPT, "metric", "split", "evaluated_at"]
    return once.sort("run_id", "step", "value", nulls_last=False).unique(key, keep="last", maintain_order=True)
