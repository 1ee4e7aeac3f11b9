"""Laws of a run's intervals: they cover its time once, so their costs come to the run's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab import Lab
from support.random_ledgers import HOUR_MS, HOURS, MONTH, Stay, at, machine_line, tracker

pytestmark = pytest.mark.slow
FEW = settings(max_examples=15, deadline=None, derandomize=True, database=None)
BASES = ("accelerator_hours", "list_cost_usd", "effective_cost_usd", "billed_cost_usd")
PHASES = [
    "provision",
    "init",
    "compile",
    "restore",
    "train",
    "data_wait",
    "ckpt_stall",
    "eval",
    "rollback",
    "teardown",
    "idle_hold",
]
END = HOURS * HOUR_MS
MOMENTS = st.integers(0, END)
COSTS = st.decimals(0, 2000, places=10).map(str)


@st.composite
def run_with_attempts(draw: st.DrawFn) -> tuple[list[dict[str, str]], dict[str, list[dict]]]:
    """A node billed throughout and a run of one to three attempts on it, with saves, epochs and phases anywhere."""
    lines = [machine_line("i-0a", number, "1", draw(COSTS)) for number in range(HOURS)]
    bounds = sorted(draw(st.lists(MOMENTS, min_size=2, max_size=6, unique=True)))
    spans = [(0, start, end) for start, end in zip(bounds[::2], bounds[1::2], strict=False)]
    rows = tracker([Stay(0, "i-0a", draw(st.none() | st.integers(1, 8)), *span[1:]) for span in spans], spans)
    attempts = st.integers(1, len(spans))
    run = {"source_name": "jobs", "run_id": "run-0"}
    for attempt in rows["tracker_attempt"]:
        attempt["end_reason"] = draw(st.sampled_from(["completed", "spot_interruption"]))
    rows["tracker_run"][0]["status"] = draw(st.sampled_from(["completed", "failed", None]))
    rows["tracker_checkpoint"] = [
        {**run, "checkpoint_id": f"k{n}", "attempt_no": draw(attempts), "durable_at": at(ms), "is_resumable": kept}
        for n, (ms, kept) in enumerate(draw(st.lists(st.tuples(MOMENTS, st.booleans()), max_size=5)))
    ]
    rows["tracker_epoch"] = [
        {**run, "attempt_no": draw(attempts), "epoch_index": draw(st.integers(1, 3)), "completed_at": at(ms)}
        for ms in draw(st.lists(MOMENTS, max_size=4, unique=True))
    ]
    phases = []
    for number, (_, start, end) in enumerate(spans, start=1):
        inside = st.integers(start, end)
        for phase in draw(st.lists(st.sampled_from(PHASES), max_size=5)):
            opened, closed = sorted((draw(inside), draw(inside)))
            times = {"started_at": at(opened), "ended_at": at(closed)}
            phases.append({**run, "attempt_no": number, "phase": phase, **times})
    rows["tracker_phase"] = phases
    return lines, rows


@FEW
@given(run_with_attempts())
def test_checkpoints_and_tail_are_the_run_and_epochs_are_inside_it(case: tuple[list, dict]) -> None:
    lines, runs = case
    sums = ", ".join(f"sum({name})" for name in BASES)
    with Lab({MONTH: lines}, runs) as made:
        (run,) = made.ask(f"select {sums} from fct_ledger where bucket = 'run' and piece_kind <> 'whole'", "fct_ledger")
        covered = f"select {sums} from fct_interval_cost where interval_kind in ('checkpoint', 'tail')"
        assert made.ask(covered, "fct_interval_cost") == [run]
        (bucket,) = made.ask(f"select {sums} from fct_ledger where bucket = 'run'", "fct_ledger")
        assert bucket == run
        part = "select coalesce(sum(effective_cost_usd), 0) from fct_interval_cost where interval_kind = 'epoch'"
        ((amount,),) = made.ask(part, "fct_interval_cost")
        assert 0 <= amount <= run[2]


@FEW
@given(run_with_attempts())
def test_phases_are_the_run_and_causes_of_waste_its_waste(case: tuple[list, dict]) -> None:
    lines, runs = case
    sums = ", ".join(f"sum({name})" for name in BASES)
    with Lab({MONTH: lines}, runs) as made:
        (run,) = made.ask(f"select {sums} from fct_ledger where bucket = 'run' and piece_kind <> 'whole'", "fct_ledger")
        assert made.ask(f"select {sums} from detail_run_phase_cost", "detail_run_phase_cost") == [run]
        ((wasted, failed),) = made.ask("select wasted_cost_usd, status = 'failed' from mart_run_cost", "mart_run_cost")
        ((causes,),) = made.ask(
            "select coalesce(sum(effective_cost_usd), 0) from mart_run_waste where is_waste", "mart_run_waste"
        )
        assert causes == wasted
        # A failed run is waste as a whole; no run wastes more than it cost.
        assert wasted == run[2] if failed else 0 <= wasted <= run[2]
