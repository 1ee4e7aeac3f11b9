"""A baseline that names its runs: hours, paid ratio and interval come from them, and stay as first published."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import log
from pathlib import Path

import pytest
from support.bills import instance_time, one_attempt, write_config, write_events, write_export
from support.ledgers import LazyBuilder, ask, lazy_warehouse, publish_tables

from pipelines.analysis.estimate import sample, unit_cost
from pipelines.base.errors import UsageError

WORK = {"model": "m", "dataset": "d", "epoch_unit": "dataset_pass"}
WORKLOAD = "m / d / seq ? / batch ? / any precision / no target"
BASELINE = f"""name = "b"
version = 1
frozen_on = 2026-06-30
workload_id = "{WORKLOAD}"
gpu_instance_type = "p5.48xlarge"
unit_measure = "cost_per_epoch"
run_ids = ["gpu-1", "gpu-2", "gpu-3", "gpu-failed"]
"""
# Whole instance-hours of an epoch each; the last run did none.
HOURS = {"gpu-1": 2, "gpu-2": 3, "gpu-3": 4, "gpu-failed": 1}
TABLES = ("detail_baseline", "mart_savings_monthly")


def company(
    root: Path,
    *baselines: str,
    others: Sequence[tuple[dict[str, object], int]] = (),
    resumes: bool = False,
    **declared: object,
) -> Path:
    """Four GPU runs of June, and one Trainium run of July: five hours at 21.50 for an epoch of 1,000 tokens. Each of
    the `others` is a run of an hour, with what it records otherwise and the tokens of its epoch; `resumes` is whether a
    run continues the failed one for an hour."""
    june, events = [], []
    for day, (run_id, hours) in enumerate(HOURS.items(), start=1):
        start = datetime(2026, 6, day, 10)
        june += instance_time(f"i-{day}", "p5.48xlarge", "55.04", start, timedelta(hours=hours))
        inside = [epoch(f"2026-06-0{day}T{10 + hours}:00:00Z")]
        made = one_attempt(
            run_id, [f"i-{day}"], "p5.48xlarge", start, timedelta(hours=hours), inside * (day < 4), **WORK, **declared
        )
        if day == 4:
            made = [{**event, "status": "failed"} if event["event"] == "run_ended" else event for event in made]
        events += made
    if resumes:
        start, lasts = datetime(2026, 6, 5, 10), timedelta(hours=1)
        june += instance_time("i-7", "p5.48xlarge", "55.04", start, lasts)
        origin = {"parent_run_id": "gpu-failed", "base_checkpoint_id": "saved"}
        inside = [epoch("2026-06-05T11:00:00Z")]
        events += one_attempt("gpu-rest", ["i-7"], "p5.48xlarge", start, lasts, inside, **WORK, **origin)
    start = datetime(2026, 7, 14, 10)
    july = instance_time("i-5", "trn1.32xlarge", "21.50", start, timedelta(hours=5))
    inside = [epoch("2026-07-14T15:00:00Z")]
    events += one_attempt("trn", ["i-5"], "trn1.32xlarge", start, timedelta(hours=5), inside, **WORK, **declared)
    later, hour = start + timedelta(hours=6), timedelta(hours=1)
    for number, (other, epoch_tokens) in enumerate(others):
        july += instance_time(f"i-6{number}", "trn1.32xlarge", "21.50", later, hour)
        inside = [epoch("2026-07-14T17:00:00Z", epoch_tokens)]
        run = (f"other-{number}", [f"i-6{number}"], "trn1.32xlarge", later, hour, inside)
        events += one_attempt(*run, **WORK | declared | other)
    export = write_export(root, {"2026-06": june, "2026-07": july})
    config = write_config(root, billing=export, runs=write_events(root / "runs", events))
    return declare(config, config.read_text(), *baselines)


def epoch(at: str, tokens_seen: int = 1000) -> dict[str, object]:
    return {"event": "epoch_completed", "epoch": 1, "at": at, "tokens_seen": tokens_seen}


def declare(config: Path, text: str, *baselines: str) -> Path:
    """The configuration with the baselines and their digests."""
    for number, baseline in enumerate(baselines):
        (config.parent / f"b{number}.toml").write_text(baseline)
        seal = hashlib.sha256(baseline.encode()).hexdigest()
        text += f'\n[[decisions.baselines]]\nfile = "b{number}.toml"\nsha256 = "{seal}"\n'
    config.write_text(text)
    return config


def test_hours_come_from_all_ended_runs(tmp_path: Path) -> None:
    """(2 + 3 + 4 + 1) / 3 epochs; what was paid is the on-demand price. The run of July took 5 x 21.50 = 107.50."""
    built = lazy_warehouse(company(tmp_path, BASELINE))
    (row,) = ask(built, "select * from detail_baseline").to_dicts()
    assert (row["run_count"], row["failed_run_count"], row["baseline_evidence"]) == (3, 1, "measured")
    assert row["hours_per_unit"] == pytest.approx(10 / 3)
    assert row["success_hours_per_unit"] == 3
    assert row["baseline_paid_ratio"] == pytest.approx(1)
    assert row["hours_low_per_unit"] < 10 / 3 < row["hours_high_per_unit"]
    assert (row["first_run_date"], row["last_run_date"]) == (date(2026, 6, 1), date(2026, 6, 4))
    assert row["all_runs_hours_per_unit"] == pytest.approx(10 / 3)
    (saved,) = ask(built, "select * from mart_savings_monthly").to_dicts()
    baseline, actual = 55.04 * 10 / 3, 107.50
    assert float(saved["avoided_cost_usd"]) == pytest.approx(baseline - actual)
    # An epoch of 10/3 hours at 55.04; the hours have ten places, so has the cost.
    assert float(saved["baseline_cost_usd"]) == pytest.approx(baseline, abs=1e-8)
    # Log shares: the chip by the hours of runs that did the work, operations by the failed run, nothing by the rate.
    scale = (baseline - actual) / log(baseline / actual)
    assert float(saved["chip_avoided_cost_usd"]) == pytest.approx(scale * log(55.04 * 3 / actual), abs=1e-8)
    assert float(saved["operations_avoided_cost_usd"]) == pytest.approx(scale * log(10 / 9), abs=1e-8)
    assert float(saved["rate_avoided_cost_usd"]) == pytest.approx(0, abs=1e-8)
    parts = sum(saved[f"{part}_avoided_cost_usd"] for part in ("chip", "rate", "operations"))
    assert parts == saved["avoided_cost_usd"]
    # Nothing is proven of this workload.
    assert saved["is_headline"] is False


OF_OTHER_WORK: dict[str, tuple[dict[str, object], int]] = {
    "dataset": ({"dataset": "d-mini"}, 1000),
    "epoch size": ({}, 100),
    "target": ({"target_metric": "loss", "target_value": 9.0, "target_direction": "min"}, 1000),
    "base checkpoint": ({"base_checkpoint_id": "trained"}, 1000),
}


def test_runs_of_other_work_avoid_an_unknown_cost(tmp_path: Path) -> None:
    """A declared workload does not make them alike: the month has the epoch of the first run alone, for 107.50."""
    baseline = BASELINE.replace(WORKLOAD, "w")
    built = lazy_warehouse(company(tmp_path, baseline, others=[*OF_OTHER_WORK.values()], workload_id="w"))
    (saved,) = ask(built, "select * from mart_savings_monthly").to_dicts()
    assert (saved["run_count"], saved["unit_count"], saved["actual_cost_usd"]) == (1, 1, Decimal("107.50"))
    assert float(saved["avoided_cost_usd"]) == pytest.approx(55.04 * 10 / 3 - 107.50)
    reasons = [
        f"runs of another {field} than the baseline or the proven comparison are left out" for field in OF_OTHER_WORK
    ]
    assert saved["missing_evidence"] in reasons
    columns = "is_other_work, actual_cost_usd, baseline_cost_usd, missing_evidence"
    left = ask(built, f"select {columns} from detail_savings_run where run_id <> 'trn' order by run_id").rows()
    assert left == [(True, Decimal("21.50"), None, reason) for reason in reasons]


def test_hours_are_priced_in_the_region_of_the_runs(tmp_path: Path) -> None:
    """They ran in us-west-2 at 55.04 an hour, so that a region at 75.9552 avoids no more: 10/3 hours less 107.50."""
    built = lazy_warehouse(company(tmp_path, BASELINE.replace("run_ids", 'region_id = "ap-northeast-2"\nrun_ids')))
    (saved,) = ask(built, "select region_id, avoided_cost_usd from mart_savings_monthly, detail_baseline").rows()
    assert saved == ("us-west-2", pytest.approx(Decimal(5504) / 30 - Decimal("107.50"), abs=Decimal("1e-8")))


def test_a_job_without_its_last_run_measures_nothing(tmp_path: Path) -> None:
    """The failed run was resumed a day later, after the last named one: its hour alone counts without an epoch."""
    built = lazy_warehouse(company(tmp_path, BASELINE, resumes=True))
    (row,) = ask(built, "select hours_per_unit, missing_evidence from detail_baseline").rows()
    assert row == (None, "run gpu-rest of the same job is not named")


def test_runs_of_different_work_measure_nothing(tmp_path: Path) -> None:
    config = company(tmp_path, BASELINE.replace(WORKLOAD, "w"), workload_id="w")
    events = tmp_path / "runs" / "events.jsonl"
    first, _, rest = events.read_text().partition("\n")
    events.write_text(first.replace('"dataset": "d"', '"dataset": "d-large"') + "\n" + rest)
    (row,) = ask(lazy_warehouse(config), "select hours_per_unit, missing_evidence from detail_baseline").rows()
    assert row == (None, "runs of the workload have different datasets: d and d-large")


def test_a_run_whose_machine_another_run_claims_measures_nothing(tmp_path: Path) -> None:
    config = company(tmp_path, BASELINE)
    other = one_attempt("other", ["i-1"], "p5.48xlarge", datetime(2026, 6, 1, 10), timedelta(hours=2), [], model="x")
    write_events(tmp_path / "runs", other, "other.jsonl")
    (row,) = ask(lazy_warehouse(config), "select hours_per_unit, missing_evidence from detail_baseline").to_dicts()
    reason = "run gpu-1 and others claim more of i-1 than it has in 2 hours: its cost is not certain"
    assert row == {"hours_per_unit": None, "missing_evidence": reason}


# By name: what of the baseline is written otherwise, and why it then measures nothing.
OTHERS: dict[str, tuple[str, str, str | None]] = {
    "later": ('"gpu-1", ', "", None),
    "gap": ('"gpu-2", ', "", "run gpu-2 of the same days is not named"),
    "unbilled": ('"gpu-failed"', '"gpu-failed", "unknown"', "run unknown is not on the bill"),
    "mixed": ('"gpu-failed"', '"gpu-failed", "trn"', "run trn used trn1.32xlarge"),
    "early": (
        "frozen_on = 2026-06-30",
        "frozen_on = 2026-06-03",
        "run gpu-failed ended on 2026-06-04, after the baseline",
    ),
    "apart": (WORKLOAD, f"other {WORKLOAD}", f"run gpu-1 is of the workload {WORKLOAD}"),
}
TYPED = "hours_per_unit = 40\nhours_low_per_unit = 40\nhours_high_per_unit = 40\n"


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilder:
    """Baselines of the same runs, and one whose hours somebody typed."""
    written = {name: BASELINE.replace(old, new) for name, (old, new, _) in OTHERS.items()}
    written["typed"] = BASELINE[: BASELINE.index("run_ids")] + TYPED
    # A workload has one baseline of a day.
    baselines = (
        text.replace('name = "b"', f'name = "{name}"').replace("2026-06-30", f"2026-06-{day}")
        for day, (name, text) in enumerate(written.items(), start=24)
    )
    return lazy_warehouse(company(tmp_path_factory.mktemp("others"), *baselines))


def test_a_window_of_expensive_runs_shows_what_all_runs_took(others: LazyBuilder) -> None:
    """The runs of 2 to 4 June alone: (3 + 4 + 1) / 2 epochs are 4 hours; with that of the 1st, 10 / 3."""
    (row,) = ask(others, "select * from detail_baseline where baseline_name = 'later'").to_dicts()
    assert (row["first_run_date"], row["hours_per_unit"]) == (date(2026, 6, 2), 4)
    assert row["all_runs_hours_per_unit"] == pytest.approx(10 / 3)


@pytest.mark.parametrize("name", OTHERS)
def test_runs_that_do_not_measure_it(others: LazyBuilder, name: str) -> None:
    (row,) = ask(others, f"select * from detail_baseline where baseline_name = '{name}'").to_dicts()
    reason = OTHERS[name][-1]
    if reason is None:
        assert row["hours_per_unit"] == 4, "(3 + 4 + 1) / 2: runs before the first named one are another time"
    else:
        assert reason in row["missing_evidence"]
        assert (row["hours_per_unit"], row["is_sealed"]) == (None, False)


def test_an_asserted_figure_is_labeled(others: LazyBuilder) -> None:
    """40 hours instead of 3.33: $2,201.60 less $107.50 would be avoided."""
    saved = "select baseline_evidence, is_headline, avoided_cost_usd from mart_savings_monthly"
    (row,) = ask(others, f"{saved} where baseline_name = 'typed'").rows()
    assert row == ("asserted", False, Decimal("2094.10"))
    (warned,) = others.failing_rows("avoided_cost_rests_on_an_asserted_baseline")
    assert (warned["baseline_name"], warned["avoided_cost_usd"]) == ("typed", "2094.1000000000")


def test_what_was_published_of_a_baseline_stays(tmp_path: Path) -> None:
    """The failed run is no longer recorded: nine hours of three epochs would be left of ten."""
    config = company(tmp_path, BASELINE)
    text = config.read_text().partition("\n[[decisions")[0]
    sealed = "select * exclude (all_runs_hours_per_unit) from detail_baseline"
    first = ask(publish_tables(config, TABLES), sealed)
    events = tmp_path / "runs" / "events.jsonl"
    kept = [line for line in events.read_text().splitlines(keepends=True) if "gpu-failed" not in line]
    events.write_text("".join(kept))
    assert ask(publish_tables(config, TABLES), sealed).equals(first)
    assert first["is_sealed"].all() and first["figures_sha256"].null_count() == 0
    # A version may not be edited in place.
    declare(config, text, BASELINE.replace('"gpu-1", ', ""))
    with pytest.raises(UsageError, match="Baseline b version 1 was changed after it was published"):
        publish_tables(config, TABLES)
    # Nor may it leave and return.
    config.write_text(text)
    (gone,) = ask(publish_tables(config, TABLES), "select is_configured from detail_baseline").rows()
    assert gone == (False,)
    declare(config, text, BASELINE.replace('"gpu-1", ', ""))
    with pytest.raises(UsageError, match="Baseline b version 1 was changed after it was published"):
        publish_tables(config, TABLES)


def test_the_interval_of_one_side() -> None:
    """Equal successes: R = 3, Σe² = (1 + 0 + 1) / 81, var = 3/2 · 2/81, t of 2 degrees 4.302653 (NIST tables)."""
    value, low, _, missing = unit_cost(sample([2, 3, 4]))
    assert (value, missing) == (3, None)
    assert low == pytest.approx(3 * 2.718281828459045 ** -(4.302653 * (3 / 81) ** 0.5), rel=1e-6)
    assert unit_cost(sample([2, 3]))[1:3] == (None, None)
