"""MLPerf logs as runs: set-up, epochs and evaluations, by the clock they state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.records import at, rows, source

from pipelines.ingest.runs.records import UNREAD
from pipelines.ingest.runs.tracker import read_runs

Rows = list[dict[str, Any]]


def mllog(key: str, ms: int, value: Any = None, **metadata: Any) -> str:
    return ":::MLLOG " + json.dumps({"time_ms": ms, "key": key, "value": value, "metadata": metadata})


def test_an_mlperf_log_is_a_run_with_its_set_up_on_the_bill(tmp_path: Path) -> None:
    """Init of 60 s before the clock, two blocks of 100 s with evaluations of 10 s, score 0.93 at the second."""
    lines = [
        mllog("submission_benchmark", 0, "llama2_70b_lora"),
        mllog("target_accuracy", 0, 0.925),
        mllog("init_start", 0),
        mllog("init_stop", 60_000),
        mllog("run_start", 60_000),
        mllog("block_start", 60_000),
        mllog("block_stop", 160_000, samples_count=100),
        mllog("eval_start", 160_000),
        mllog("eval_accuracy", 170_000, 0.90, samples_count=100),
        mllog("eval_stop", 170_000),
        mllog("block_start", 170_000),
        mllog("block_stop", 270_000, samples_count=200),
        mllog("eval_start", 270_000),
        mllog("eval_accuracy", 280_000, 0.93, samples_count=200),
        mllog("eval_stop", 280_000),
        mllog("run_stop", 280_000, status="success"),
        "some other line",
    ]
    (tmp_path / "result_0.txt").write_text("\n".join(lines))
    records = read_runs(source("mllog", tmp_path))
    assert rows(records, "run", "run_id", "model", "target_metric", "target_direction", "status") == [
        ("result_0", "llama2_70b_lora", "eval_accuracy", "max", "completed")
    ]
    start = at("1970-01-01T00:00:00")
    seconds = [
        (phase, (began - start).total_seconds(), (ended - start).total_seconds())
        for phase, began, ended in rows(records, "phase", "phase", "started_at", "ended_at")
    ]
    assert sorted(seconds, key=lambda phase: phase[1]) == [
        ("init", 0, 60),
        ("train", 60, 160),
        ("eval", 160, 170),
        ("train", 170, 270),
        ("eval", 270, 280),
    ]
    assert rows(records, "epoch", "epoch_index", "samples_seen") == [(1, 100), (2, 200)]
    assert rows(records, "evaluation", "value") == [(0.90,), (0.93,)]


def test_an_epoch_that_every_rank_logs_counts_once(tmp_path: Path) -> None:
    """Two ranks write one log; each epoch is over with its last rank, at 101 and 201 s."""
    stops = [mllog("epoch_stop", 100_000 * n + ms, epoch_num=n) for n in (1, 2) for ms in (0, 1_000)]
    (tmp_path / "result_0.txt").write_text("\n".join([mllog("run_start", 0), *stops]))
    assert rows(read_runs(source("mllog", tmp_path)), "epoch", "epoch_index", "completed_at") == [
        (1, at("1970-01-01T00:01:41")),
        (2, at("1970-01-01T00:03:21")),
    ]


def test_a_log_cut_short_is_a_run_without_end(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(mllog("run_start", 1000) + "\n" + mllog("run_stop", 2000)[:20])
    records = read_runs(source("mllog", tmp_path))
    assert rows(records, "run", "status", "ended_at") == [(None, None)]
    assert any("the last line is cut short" in warning for warning in records.warnings)
    assert any("has no run_stop" in warning for warning in records.warnings)


def test_a_log_with_a_broken_line_is_set_aside_and_the_next_one_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(":::MLLOG {broken\n" + mllog("run_stop", 2000))
    (tmp_path / "b.log").write_text(mllog("run_start", 1000) + "\n" + mllog("run_stop", 2000))
    found = read_runs(source("mllog", tmp_path))
    assert any("a.log, line 1 is not an MLLOG entry" in warning for warning in found.warnings)
    assert found.tables[UNREAD]["run_id"].to_list() == ["a"]
    assert rows(found, "run", "run_id") == [("b",)]


def test_gpt3_counts_tokens_where_others_count_epochs(tmp_path: Path) -> None:
    """Facts 1.11: a block of gpt3 is 51,904,512 tokens; two blocks are 103,809,024, not so many epochs."""
    lines = [mllog("submission_benchmark", 0, "gpt3"), mllog("run_start", 0)]
    for number in range(2):
        at, place = number * 100_000, number * 51_904_512
        lines += [
            mllog("block_start", at, first_epoch_num=place, epoch_count=51_904_512),
            mllog("block_stop", at + 90_000, first_epoch_num=place),
        ]
    (tmp_path / "result_0.txt").write_text("\n".join([*lines, mllog("run_stop", 200_000, status="success")]))
    read = read_runs(source("mllog", tmp_path))
    assert read.tables["tracker_run"].select("epoch_unit", "epoch_unit_size").row(0) == ("token_block", 51_904_512)
    counted = read.tables["tracker_epoch"].select("epoch_index", "tokens_seen").rows()
    assert counted == [(1, 51_904_512), (2, 103_809_024)]
