"""Stretches between an opening and a closing event of the same thing, recorded by one rank or by many."""

from __future__ import annotations

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.ingest.runs.event_fields import clock
from pipelines.ingest.runs.event_log import EventLog


def spans(
    log: EventLog,
    key: str,
    opening: str,
    closing: str,
    warnings: list[str],
    facts: list[pl.Expr],
    *,
    take_turns: bool = False,
) -> pl.DataFrame:
    """One row per stretch of (run_id, attempt_no, `key`): opened_at, closed_at (null while open) and `facts`.

    A stretch takes in every opening until something closes it, and every closing until it opens again. With
    `take_turns` its turn also ends where another value of `key` opens in the same attempt. Times are ms since
    1970. Raises SourceError for a thing that closes before it opens; what only closes is skipped, with a
    warning.
    """
    attempt = ["run_id", "attempt_no"]
    thing = [*attempt, key]
    events = pl.concat(
        [
            log.frame(opening).with_columns(closes=pl.lit(False)),
            log.frame(closing).with_columns(closes=pl.lit(True)),
        ],
        how="diagonal",
    )
    order = [
        "at",
        "closes",
        key,
        *(name for name in events.columns if name not in ("at", "closes", "file_no", "line_no")),
    ]
    opens = ~pl.col("closes")
    # A stretch begins with the first opening, one after a closing and, by turns, one after another's.
    begins = pl.col("closes").shift(1).over(thing).fill_null(True)
    if take_turns:
        opened_before = pl.when(opens).then(pl.col(key)).forward_fill().shift(1).over(attempt)
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
        .agg(
            *facts,
            opened_at=pl.col("at").filter(opens).min(),
            closed_at=pl.col("at").filter("closes").max(),
        )
        .drop("stretch")
    )


def _check_closings(
    log: EventLog, events: pl.DataFrame, thing: list[str], key: str, closing: str, warnings: list[str]
) -> None:
    opened = events.filter(~pl.col("closes")).group_by(thing).agg(opened_at=pl.col("at").min())
    loose = events.filter(pl.col("stretch") == 0).join(opened, on=thing, how="left").sort("file_no", "line_no")
    for row in loose.filter(pl.col("opened_at").is_not_null()).iter_rows(named=True):
        raise SourceError(
            f"{log.place(row['file_no'], row['line_no'])} has `at` {clock(row['at'])}: {closing} of "
            f"{row[key]!r} in attempt {row['attempt_no']} of run {row['run_id']!r} comes before its start at "
            f"{clock(row['opened_at'])}; fix the times."
        )
    warnings += [
        f"Run {run!r} attempt {attempt} has {closing} of {name!r} without its start; it is skipped."
        for run, attempt, name in loose.select(thing).unique().iter_rows()
    ]
