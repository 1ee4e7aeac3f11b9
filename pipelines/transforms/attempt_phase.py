"""The one phase each second of an attempt belongs to, and the waste it is.

Pure Polars over run-sized frames. Times are UTC milliseconds; stretches are half-open, touch, and cover every stay of
the attempt, so their costs sum to the compute of the run. Where several things claim a second the first of `CLAIMS`
has it: the run's end and lost work, then what was declared, the interruption before the work it
interrupts, and at last what follows from the attempt's own start, start-up and end.

A second wastes money for one cause alone: `idle_hold` after the run's end; else `failed_run` where the run failed;
else `lost_work`, `replay`, the `restart` before a later attempt trains again, or `compile`. Where no source of the run
can know its checkpoints, what would be lost work is `unknown`.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.transforms import Frames

STARTUP_PHASES = ("provision", "init", "compile", "restore")


def ms(column: str, name: str) -> pl.Expr:
    """A timestamp as UTC milliseconds."""
    return pl.col(column).dt.epoch("ms").alias(name)


def timed_phases(phase: pl.DataFrame) -> pl.DataFrame:
    """Declared phases with `started_ms` and `ended_ms`."""
    return phase.with_columns(ms("started_at", "started_ms"), ms("ended_at", "ended_ms"))


def durable_checkpoints(checkpoint: pl.DataFrame) -> pl.DataFrame:
    """Checkpoints a run can resume from, with `durable_ms`, and `holds_ms`, up to when one holds the work.

    What trains on while an asynchronous save is written is not in it. One that is durable within a second of its stall
    is not asynchronous: both are rounded.
    """
    held = ms("save_started_at", "holds_ms") + (pl.col("stall_seconds") * 1000).cast(pl.Int64)
    durable = checkpoint.filter("is_resumable", "is_complete").with_columns(ms("durable_at", "durable_ms"))
    return durable.with_columns(pl.when(held < pl.col("durable_ms") - 1000).then(held).otherwise("durable_ms"))


def working_time(attempt: pl.DataFrame, phase: pl.DataFrame, durable: pl.DataFrame) -> pl.DataFrame:
    """Each attempt with `trains_ms`, when its start-up is over, and `kept_ms`, up to when its work survived."""
    is_startup = pl.col("phase").is_in(STARTUP_PHASES)
    begun = phase.group_by("run_id", "attempt_no").agg(
        train_ms=pl.col("started_ms").filter(pl.col("phase") == "train").min(),
        startup_ms=pl.col("ended_ms").filter(is_startup).max(),
    )
    saved = durable.group_by("run_id", "attempt_no").agg(saved_ms=pl.col("holds_ms").max())
    timed = (
        attempt.with_columns(ms("started_at", "started_ms"), ms("ended_at", "ended_ms"))
        .join(begun, on=["run_id", "attempt_no"], how="left")
        .join(saved, on=["run_id", "attempt_no"], how="left")
        .sort("run_id", "attempt_no")
        .with_columns(
            trains_ms=pl.coalesce("train_ms", "startup_ms", "started_ms").clip(
                pl.col("started_ms"), pl.col("ended_ms")
            ),
            is_last=pl.col("attempt_no") == pl.col("attempt_no").max().over("run_id"),
        )
    )
    survives_whole = pl.col("is_last") | (pl.col("end_reason") == "completed")
    kept = pl.when(survives_whole).then("ended_ms").otherwise(pl.coalesce("saved_ms", "trains_ms"))
    return timed.with_columns(kept_ms=kept.clip(pl.col("trains_ms"), pl.col("ended_ms")))


FAILED_STATUSES = ("failed", "killed", "abandoned")
COMPILE_PURPOSE = "compile_only"
# Sources also write short names (facts training-runs 2).
ALIASES = {"eval": "evaluation", "ckpt_stall": "checkpoint_stall"}
DECLARED = (
    *("idle_hold", "rollback", "restore", "compile", "checkpoint_stall", "evaluation", "data_wait"),
    *("init", "provision", "teardown", "train"),
)
# What claims a second, the strongest first, and the phase it makes of it.
CLAIMS = {
    "held": "idle_hold",
    "compile_run": "compile",
    "lost_work": "rollback",
    "replay": "rollback",
    **{f"declared_{phase}": phase for phase in DECLARED},
    "before": "provision",
    "startup": "init",
    "unsaved": "train",
    "working": "train",
    "after": "teardown",
}
ATTEMPT = ["run_id", "attempt_no"]


def attempt_phases(work: pl.DataFrame, phase: pl.DataFrame, durable: pl.DataFrame, table: Frames) -> pl.DataFrame:
    """Stretches as (run_id, attempt_no, part_no, phase, waste_cause, started_ms, ended_ms).

    `work`, `phase` and `durable` are those of the functions above; `table` has the trackers' tables and dim_run.
    """
    moments = {"epoch": "completed_at", "checkpoint": "durable_at", "evaluation": "evaluated_at"}
    reached = pl.concat(
        table[f"stg_tracker__{kind}"].select(*ATTEMPT, "step", ms(at, "at_ms")) for kind, at in moments.items()
    )
    attempt = _spans(table["dim_run"], work, table["stg_tracker__resource"]).join(
        _replayed(work, durable, reached), on=ATTEMPT, how="left"
    )
    claims = pl.concat([*_own_claims(attempt), *_declared(phase), _stalls(table["stg_tracker__checkpoint"])])
    inside = (
        claims.join(attempt.select(*ATTEMPT, "from_ms", "until_ms"), on=ATTEMPT)
        .with_columns(
            started_ms=pl.max_horizontal("started_ms", "from_ms"), ended_ms=pl.min_horizontal("ended_ms", "until_ms")
        )
        .filter(pl.col("ended_ms") > pl.col("started_ms"))
    )
    facts = attempt.select(*ATTEMPT, "is_failed", "is_later")
    return _touching(_swept(inside).join(facts, on=ATTEMPT, maintain_order="left").with_columns(waste_cause=_cause()))


def _spans(run: pl.DataFrame, work: pl.DataFrame, resource: pl.DataFrame) -> pl.DataFrame:
    """Each attempt from the first moment it holds anything to the last, with the facts of its run."""
    stay = resource.group_by(ATTEMPT).agg(ms("joined_at", "joined_ms").min(), ms("left_at", "left_ms").max())
    facts = run.select(
        "run_id",
        ms("ended_at", "run_ended_ms"),
        (pl.col("purpose") == COMPILE_PURPOSE).fill_null(False).alias("compiles_only"),
        pl.col("status").is_in(FAILED_STATUSES).fill_null(False).alias("is_failed"),
        "is_checkpoint_recorded",
    )
    return (
        work.select(*ATTEMPT, "started_ms", "trains_ms", "kept_ms", "ended_ms")
        .join(stay, on=ATTEMPT, how="full", coalesce=True)
        .with_columns(started_ms=pl.coalesce("started_ms", "joined_ms"), ended_ms=pl.coalesce("ended_ms", "left_ms"))
        .with_columns(
            trains_ms=pl.coalesce("trains_ms", "started_ms"),
            kept_ms=pl.coalesce("kept_ms", "ended_ms"),
            from_ms=pl.min_horizontal("started_ms", "joined_ms"),
            until_ms=pl.max_horizontal("ended_ms", "left_ms"),
            is_later=pl.col("attempt_no") > pl.col("attempt_no").min().over("run_id"),
        )
        .join(facts, on="run_id")
    )


def _replayed(work: pl.DataFrame, durable: pl.DataFrame, reached: pl.DataFrame) -> pl.DataFrame:
    """When each attempt was last at a step an earlier one had already saved: till then it repeats kept work."""
    saved = (
        work.select(*ATTEMPT)
        .join(durable.group_by(ATTEMPT).agg(pl.col("step").max()), on=ATTEMPT, how="left")
        .sort(ATTEMPT)
        .with_columns(pl.col("step").cum_max().forward_fill().shift(1).over("run_id").alias("saved_step"))
    )
    return (
        reached.join(saved.select(*ATTEMPT, "saved_step"), on=ATTEMPT)
        .filter(pl.col("step") <= pl.col("saved_step"))
        .group_by(ATTEMPT)
        .agg(pl.col("at_ms").max().alias("replayed_ms"))
    )


def _claim(frame: pl.DataFrame, name: str, started: str | pl.Expr, ended: str | pl.Expr) -> pl.DataFrame:
    times = frame.select(*ATTEMPT, claim=pl.lit(name), started_ms=started, ended_ms=ended)
    return times.cast({"started_ms": pl.Int64, "ended_ms": pl.Int64})


def _own_claims(attempt: pl.DataFrame) -> list[pl.DataFrame]:
    useful = attempt.filter(~pl.col("is_failed"))
    return [
        _claim(attempt, "held", pl.max_horizontal("run_ended_ms", "ended_ms"), "until_ms"),
        _claim(attempt.filter("compiles_only"), "compile_run", "from_ms", "until_ms"),
        _claim(useful.filter("is_checkpoint_recorded"), "lost_work", "kept_ms", "ended_ms"),
        _claim(useful.filter(~pl.col("is_checkpoint_recorded")), "unsaved", "kept_ms", "ended_ms"),
        _claim(useful.drop_nulls("replayed_ms"), "replay", "trains_ms", pl.min_horizontal("replayed_ms", "kept_ms")),
        _claim(attempt, "before", "from_ms", "started_ms"),
        _claim(attempt, "startup", "from_ms", "trains_ms"),
        _claim(attempt, "working", "trains_ms", "ended_ms"),
        _claim(attempt, "after", "ended_ms", "until_ms"),
    ]


def _declared(phase: pl.DataFrame) -> list[pl.DataFrame]:
    named = phase.with_columns(pl.col("phase").replace(ALIASES))
    return [
        _claim(named.filter(pl.col("phase") == name), f"declared_{name}", "started_ms", "ended_ms") for name in DECLARED
    ]


def _stalls(checkpoint: pl.DataFrame) -> pl.DataFrame:
    """A save holds the training up from its start, or, where that is not recorded, until it is durable."""
    stall = (pl.col("stall_seconds") * 1000).round().cast(pl.Int64)
    begins = pl.coalesce(ms("save_started_at", "begun_ms"), ms("durable_at", "durable_ms") - stall)
    return _claim(checkpoint.filter(pl.col("stall_seconds") > 0), "declared_checkpoint_stall", begins, begins + stall)


def _swept(claims: pl.DataFrame) -> pl.DataFrame:
    """Stretches between neighboring moments, each with how many of every claim cover it: one sort, no pairs."""
    bounds = pl.concat(
        claims.select(*ATTEMPT, "claim", started_ms=moment, change=pl.lit(change, pl.Int32))
        for moment, change in (("started_ms", 1), ("ended_ms", -1))
    )
    # Of the claims that no attempt has, the causes of waste ask for one.
    present = [name for name in CLAIMS if name in {"startup", "unsaved", *claims["claim"].unique()}]
    # Every claim closes within its attempt, so that a running sum over all of them is one of each.
    open_count = [
        pl.when(pl.col("claim") == name).then("change").otherwise(0).cum_sum().alias(name) for name in present
    ]
    order = [*ATTEMPT, "started_ms"]
    return (
        bounds.with_columns(pl.col("claim").cast(pl.Enum(list(CLAIMS))))
        .sort(order)
        .select(*order, *open_count)
        .filter(_differs(order, -1))
        .with_columns(
            ended_ms=pl.when(~_differs(ATTEMPT, -1)).then(pl.col("started_ms").shift(-1)),
            claim=pl.coalesce(pl.when(pl.col(name) > 0).then(pl.lit(name)) for name in present),
        )
        .drop_nulls(["ended_ms", "claim"])
        .with_columns(phase=pl.col("claim").replace_strict(CLAIMS, return_dtype=pl.String))
    )


def _cause() -> pl.Expr:
    return (
        pl.when(pl.col("phase") == "idle_hold").then(pl.lit("idle_hold"))
        .when("is_failed").then(pl.lit("failed_run"))
        .when(pl.col("claim").is_in(["lost_work", "replay"])).then("claim")
        .when(pl.col("phase") == "rollback").then(pl.lit("replay"))
        .when(pl.col("unsaved") > 0).then(pl.lit("unknown"))
        .when(pl.col("is_later") & (pl.col("startup") > 0)).then(pl.lit("restart"))
        .when(pl.col("phase") == "compile").then(pl.lit("compile"))
        .otherwise(pl.lit("none"))
    )  # fmt: skip


def _touching(stretch: pl.DataFrame) -> pl.DataFrame:
    """Neighbors of one phase and cause as one stretch."""
    same = [*ATTEMPT, "phase", "waste_cause"]
    ends = stretch.filter(_differs(same, -1))["ended_ms"]
    return (
        stretch.filter(_differs(same, 1))
        .with_columns(ends, part_no=pl.int_range(pl.len()).over(ATTEMPT) + 1)
        .select(*ATTEMPT, "part_no", "phase", "waste_cause", "started_ms", "ended_ms")
    )


def _differs(columns: Sequence[str], rows: int) -> pl.Expr:
    """Whether a row differs in any of the columns from the one so many rows before it; the outermost does."""
    return pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(rows)) for name in columns)
