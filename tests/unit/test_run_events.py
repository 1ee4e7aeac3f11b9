"""Run events become the tracker tables; the expected rows are read off the lines of each test by hand."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from support.event_log import DESIGN, at, event, read, text
from support.records import rows

from pipelines.ingest.runs import event_log
from pipelines.ingest.runs.event import FIELDS
from pipelines.ingest.runs.records import SCHEMAS


def test_the_design_example_row_by_row(tmp_path: Path) -> None:
    records = read(tmp_path, DESIGN)
    tables = {table: frame.rows(named=True) for table, frame in records.tables.items()}
    known = {
        table: [{k: v for k, v in row.items() if v is not None} for row in found] for table, found in tables.items()
    }
    who = {"source_name": "jobs", "run_id": "llama8b-42"}
    first = {**who, "attempt_no": 1}
    checkpoint = known["tracker_checkpoint"][0].pop("checkpoint_id")
    # sha256("s3://...") starts with these digits.
    assert checkpoint == "llama8b-42:1200:058d016edfe9"
    assert known == {
        "tracker_unread_run": [],
        "tracker_run": [
            {
                **who,
                "source_system": "events",
                "model": "llama-3.1-8b",
                "dataset": "corp-v3",
                "dataset_tokens": 9.1e9,
                "seq_len": 8192,
                "global_batch_samples": 256,
                "target_metric": "eval_loss",
                "target_value": 2.05,
                "target_direction": "min",
                "purpose": "finetune",
                "team": "nlp",
                "status": "completed",
                "started_at": at("10:02:11"),
                "ended_at": at("15:10:05"),
                "last_seen_at": at("15:10:05"),
            }
        ],
        "tracker_attempt": [
            {
                **first,
                "started_at": at("10:02:11"),
                "ended_at": at("15:10:00"),
                "end_reason": "completed",
                "last_seen_at": at("15:10:00"),
            }
        ],
        "tracker_resource": [
            {
                **first,
                "resource_id": "i-0abc",
                "instance_type": "trn1.32xlarge",
                "account_id": "111122223333",
                "region_id": "us-west-2",
                "accelerators_used": 16,
                "joined_at": at("10:02:30"),
                "left_at": at("15:10:00"),
                "evidence": "imds",
            }
        ],
        "tracker_phase": [{**first, "phase": "compile", "started_at": at("10:03:00")}],
        "tracker_epoch": [
            {**first, "epoch_index": 1, "completed_at": at("12:40:03"), "step": 1200, "tokens_seen": 2.5e9}
        ],
        "tracker_checkpoint": [
            {
                **first,
                "step": 1200,
                "uri": "s3://...",
                "durable_at": at("12:41:40"),
                "stall_seconds": 41.0,
                "bytes": 98304000000,
                "is_resumable": True,
                "is_complete": True,
            }
        ],
        "tracker_evaluation": [
            {**first, "step": 1200, "metric": "eval_loss", "value": 2.11, "evaluated_at": at("12:44:00")}
        ],
    }
    assert records.warnings == []


def test_tables_keep_their_types_when_there_is_nothing(tmp_path: Path) -> None:
    records = read(tmp_path)
    assert {table: dict(frame.schema) for table, frame in records.tables.items()} == {
        table: {name: pl.DataType.from_python(d) if isinstance(d, str) else d for name, d in schema.items()}
        for table, schema in SCHEMAS.items()
    }
    assert all(frame.is_empty() for frame in records.tables.values())
    assert records.warnings == [
        f"{tmp_path / 'runs'} is empty: no run is recorded there yet; check `location` if training has run."
    ]


def test_an_unrecorded_end_stays_open_and_the_last_sign_of_life_is_kept(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        text(
            event("run_started", "10:00:00"),
            event("attempt_started", "10:00:00", attempt=1),
            event("resource_joined", "10:00:05", attempt=1, resource="i-1"),
            event("heartbeat", "10:30:00", attempt=1, step=10),
            event("attempt_started", "11:00:00", attempt=2),
            event("heartbeat", "11:45:00.250", attempt=2),
        ),
    )
    assert rows(records, "attempt", "attempt_no", "ended_at", "end_reason", "last_seen_at") == [
        (1, None, None, at("10:30:00")),
        (2, None, None, at("11:45:00.250")),
    ]
    assert rows(records, "run", "status", "ended_at", "last_seen_at") == [(None, None, at("11:45:00.250"))]
    assert rows(records, "resource", "left_at") == [(None,)]


def test_a_run_without_its_start_is_kept_with_a_warning(tmp_path: Path) -> None:
    records = read(tmp_path, text(event("heartbeat", "10:00:00"), event("heartbeat", "11:00:00")))
    assert rows(records, "run", "run_id", "model", "started_at") == [("r", None, None)]
    # No attempt recorded: its number is 1, and it began with the first thing seen of it.
    assert rows(records, "attempt", "attempt_no", "started_at") == [(1, at("10:00:00"))]
    assert records.warnings == ["Run 'r' has no run_started event: its model and dataset are unknown; write one."]


def test_a_run_id_that_is_used_again_is_reported(tmp_path: Path) -> None:
    """Two runs under one id count as one, with the facts of the first; a restart states the same, or other code."""
    first = {"model": "llama", "dataset": "corp", "seq_len": 4096, "code_revision": "a1"}
    again = event("run_started", "11:00:00", **first | {"code_revision": "b2"})
    other = event("run_started", "12:00:00", **first | {"model": "mixtral", "seq_len": 8192})
    start = event("run_started", "10:00:00", **first)
    assert read(tmp_path / "restarted", text(start, again)).warnings == []
    records = read(tmp_path / "reused", text(start), text(other))
    assert rows(records, "run", "model", "seq_len") == [("llama", 4096)]
    assert records.warnings == [
        "Run 'r' was started with different facts, of which the first count: model 'llama' and 'mixtral', seq_len "
        "'4096' and '8192'. If these are several runs, give each its own run_id."
    ]


def test_a_run_that_records_no_attempt_had_one(tmp_path: Path) -> None:
    start_and_end = text(event("run_started", "10:00:00"), event("run_ended", "12:00:00", status="completed"))
    records = read(tmp_path, start_and_end)
    assert rows(records, "attempt", "attempt_no", "started_at", "ended_at", "last_seen_at") == [
        (1, at("10:00:00"), None, at("12:00:00"))
    ]
    # An evaluation made elsewhere afterwards does not reopen it.
    late = text(event("evaluation", "13:00:00", metric="loss", value=1))
    assert rows(read(tmp_path, start_and_end, late), "run", "status", "ended_at") == [("completed", at("12:00:00"))]


def test_a_run_that_goes_on_after_its_end_is_open_again(tmp_path: Path) -> None:
    events = [
        event("run_started", "10:00:00"),
        event("attempt_started", "10:00:00", attempt=1),
        event("run_ended", "11:00:00", status="failed"),
        event("attempt_started", "12:00:00", attempt=2),
    ]
    assert rows(read(tmp_path, text(*events)), "run", "status", "ended_at") == [(None, None)]
    events.append(event("run_ended", "13:00:00", status="completed"))
    assert rows(read(tmp_path, text(*events)), "run", "status", "ended_at") == [("completed", at("13:00:00"))]


def test_ranks_that_save_shards_at_addresses_of_their_own_save_one_checkpoint(tmp_path: Path) -> None:
    """Two saves of four ranks, each a shard, the second begun at 11:00. An export and a save with its own
    id are checkpoints of their own at the same step. The id of a single address is what it was before.
    Shards of 10, 20, 30 and 40 bytes are a save of 100; with one of unknown size, the save's is unknown.
    """
    uris = [f"s3://b/2/rank{rank}" for rank in range(4)]
    lines = [
        event("checkpoint_saved", f"10:00:0{rank}", step=1, uri=f"s3://b/1/rank{rank}", bytes=10 * rank + 10)
        for rank in range(4)
    ]
    lines += [event("checkpoint_started", f"11:00:0{rank}", step=2, uri=uri) for rank, uri in enumerate(uris)]
    lines += [
        event("checkpoint_saved", f"11:01:0{rank}", step=2, uri=uri, **({"bytes": 5} if rank else {}))
        for rank, uri in enumerate(uris)
    ]
    lines.append(event("checkpoint_saved", "11:02:00", step=2, uri="s3://b/2/export", kind="export"))
    lines.append(event("checkpoint_saved", "11:03:00", step=2, uri="s3://b/2/own", checkpoint_id="own", bytes=7))
    records = read(tmp_path, text(event("run_started", "09:00:00"), *lines))
    found = records.tables["tracker_checkpoint"].sort("durable_at")
    columns = ["step", "is_resumable", "is_complete"]
    assert found.select(columns).rows() == [(1, True, True), (2, True, True), (2, False, True), (2, True, True)]
    assert found["bytes"].to_list() == [100, None, None, 7]
    assert [f"{at:%H:%M:%S}" for at in found["durable_at"]] == ["10:00:03", "11:01:03", "11:02:00", "11:03:00"]
    assert [at and f"{at:%H:%M:%S}" for at in found["save_started_at"]] == [None, "11:00:00", None, None]
    digest = sha256(b"s3://b/2/export").hexdigest()[:12]
    assert found["checkpoint_id"].to_list()[2:] == [f"r:2:{digest}", "own"]


def test_ranks_that_record_the_same_story_count_once(tmp_path: Path) -> None:
    def rank(number: int) -> str:
        clock = f"0{number}"
        return text(
            event("run_started", f"10:00:{clock}", model="m", owner=None if number == 0 else f"owner-{number}"),
            event("attempt_started", f"10:00:{clock}", attempt=1),
            event("resource_joined", f"10:01:{clock}", resource="i-1", accelerators_used=8, evidence="tag"),
            event(
                "resource_joined",
                f"10:01:{clock}",
                resource="i-1",
                instance_type="p5.48xlarge",
                evidence="api",
            ),
            event("phase_started", f"10:02:{clock}", phase="compile"),
            event("phase_ended", f"10:09:{clock}", phase="compile"),
            event("epoch_completed", f"11:00:{clock}", epoch=1, tokens_seen=5),
            event("checkpoint_saved", f"11:01:{clock}", step=9, uri="s3://b/c", bytes=70 + number),
            event("evaluation", f"11:02:{clock}", step=9, metric="loss", value=2.0 + number),
            event("resource_left", f"12:00:{clock}", resource="i-1"),
            event("attempt_ended", f"12:00:{clock}", reason="oom" if number == 1 else "completed"),
        )

    records = read(tmp_path, *(rank(number) for number in (2, 0, 1)))
    # Starts are the first rank's and ends the last one's; a field is the value of the first rank that has it.
    assert rows(records, "run", "model", "owner", "started_at") == [("m", "owner-1", at("10:00:00"))]
    assert rows(records, "attempt", "started_at", "ended_at", "end_reason") == [(at("10:00:00"), at("12:00:02"), "oom")]
    stay = ("instance_type", "accelerators_used", "joined_at", "left_at", "evidence")
    assert rows(records, "resource", *stay) == [("p5.48xlarge", 8, at("10:01:00"), at("12:00:02"), "api")]
    assert rows(records, "phase", "started_at", "ended_at") == [(at("10:02:00"), at("10:09:02"))]
    assert rows(records, "epoch", "completed_at", "tokens_seen") == [(at("11:00:02"), 5)]
    assert rows(records, "checkpoint", "durable_at", "bytes") == [(at("11:01:02"), 72)]
    assert rows(records, "evaluation", "evaluated_at", "value") == [(at("11:02:00"), 2.0)]


def test_a_node_that_comes_back_has_two_stays(tmp_path: Path) -> None:
    clocks = (("joined", "10:00:00"), ("left", "11:00:00"), ("joined", "12:00:00"))
    events = [event(f"resource_{what}", clock, resource="i-1") for what, clock in clocks]
    records = read(tmp_path, text(event("run_started", "10:00:00"), *reversed(events)))
    assert rows(records, "resource", "joined_at", "left_at") == [
        (at("10:00:00"), at("11:00:00")),
        (at("12:00:00"), None),
    ]


def test_phases_take_turns(tmp_path: Path) -> None:
    turns = (("train", "10:00:00"), ("eval", "11:00:00"), ("train", "11:05:00"), ("ckpt_stall", "12:00:00"))
    events = [event("phase_started", clock, phase=phase) for phase, clock in turns]
    events += [
        event("phase_ended", "12:00:30", phase="ckpt_stall"),
        event("phase_ended", "13:00:00", phase="train"),
    ]
    records = read(tmp_path, text(event("run_started", "10:00:00"), *events))
    assert sorted(rows(records, "phase", "started_at", "phase", "ended_at")) == [
        (at("10:00:00"), "train", None),
        (at("11:00:00"), "eval", None),
        (at("11:05:00"), "train", at("13:00:00")),
        (at("12:00:00"), "ckpt_stall", at("12:00:30")),
    ]


def test_a_checkpoint_is_known_by_run_step_and_place(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        text(
            event("run_started", "09:00:00"),
            event("checkpoint_started", "10:00:00", step=1),
            event("checkpoint_saved", "10:01:00", step=1, uri="s3://b/1"),
            event("checkpoint_started", "11:00:00", step=2, uri="s3://b/2"),
            event(
                "checkpoint_saved",
                "12:00:00",
                step=3,
                checkpoint_id="mine",
                durable_at="2026-07-01T12:09:00Z",
            ),
            # Attempt 2 did not have what it saves again: the later save is the checkpoint.
            event("checkpoint_saved", "13:00:00", attempt=2, step=1, uri="s3://b/1"),
        ),
    )
    kept = ("attempt_no", "step", "save_started_at", "durable_at")
    assert sorted(rows(records, "checkpoint", *kept)) == [
        (1, 2, at("11:00:00"), None),
        (1, 3, None, at("12:09:00")),
        (2, 1, None, at("13:00:00")),
    ]
    assert "mine" in records.tables["tracker_checkpoint"]["checkpoint_id"]
    assert records.tables["tracker_checkpoint"]["checkpoint_id"].n_unique() == 3


def test_an_id_used_for_several_steps_is_warned_of(tmp_path: Path) -> None:
    saves = [event("checkpoint_saved", f"1{step}:00:00", step=step, checkpoint_id="last") for step in (1, 2)]
    records = read(tmp_path, text(event("run_started", "09:00:00"), *saves))
    assert rows(records, "checkpoint", "checkpoint_id", "step", "durable_at") == [("last", 2, at("12:00:00"))]
    assert records.warnings == [
        "Run 'r' has checkpoint_id 'last' for saves of several steps; they count as one checkpoint. "
        "Give each save its own."
    ]


@pytest.mark.parametrize(
    ("fields", "is_resumable"),
    [
        ({}, True),
        ({"kind": "full"}, True),
        ({"kind": "full", "resumable": False}, False),
        # Weights-only or adapter saves do not protect progress unless they state it (facts training-runs 3).
        ({"kind": "weights_only"}, False),
        ({"kind": "adapter"}, False),
        ({"kind": "export"}, False),
        ({"kind": "adapter", "resumable": True}, True),
        # The canonical schema's own spelling.
        ({"is_resumable": False}, False),
    ],
)
def test_what_can_be_resumed_from(tmp_path: Path, fields: dict[str, Any], is_resumable: bool) -> None:
    records = read(tmp_path, text(event("checkpoint_saved", "10:00:00", step=1, **fields)))
    assert rows(records, "checkpoint", "is_resumable") == [(is_resumable,)]


def test_times_are_kept_in_utc(tmp_path: Path) -> None:
    line = {"event": "run_started", "run_id": "r", "at": "2026-07-01t12:00:00.123456789+02:00"}
    assert rows(read(tmp_path, text(line)), "run", "started_at") == [(at("10:00:00.123"),)]


@pytest.mark.parametrize("clock", ["2016-12-31T23:59:60Z", "2017-01-01t05:29:60.0+05:30", "2017-01-01T00:00:00Z"])
def test_a_leap_second_is_the_first_of_the_next_minute(tmp_path: Path, clock: str) -> None:
    line = {"event": "run_started", "run_id": "r", "at": clock}
    assert rows(read(tmp_path, text(line)), "run", "started_at") == [(datetime(2017, 1, 1),)]


# Values as a plain line has them, and some that only a line read by itself may have.
VALUES = r"""
"x" "" "é\u00e9" "a\"b" null true 0 -0 7 7.0 -1.5 0.5 1 1e2 2E-3 1e400 NaN "NaN" [1] 9007199254740993
99999999999999999999 "full" "job" "imds"
"""
CLOCKS = ["2026-07-01T10:00:00Z", "2026-07-01T10:00:00.1239Z", "2026-07-01T12:00:00+02:00", "2026-02-30T10:00:00Z"]
CLOCKS += ["2026-07-01t10:00:00z", "1969-12-31T23:59:59.5Z", "2026-07-01T24:00:00Z", "2026-07-01T10:00:00"]
CLOCKS += ["2026-07-01T23:59:60Z", "2026-07-01T10:00:60.5z"]


def test_a_line_means_the_same_read_in_a_block_and_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in which one field has each value in turn, in two spellings of the line, and lines with odd keys."""
    lines = []
    for kind, forms in FIELDS.items():
        base = {"event": f'"{kind}"', "run_id": '"r0"', "attempt": "1", "at": f'"{CLOCKS[0]}"'}
        base |= {
            key: value for key, value in {"resource": '"i-1"', "phase": '"p"', "epoch": "1"}.items() if key in forms
        }
        base |= {"metric": '"loss"', "value": "1.5"} if kind == "evaluation" else {}
        varied = [base | {name: value} for name in (*forms, "attempt", "rank", "tags") for value in VALUES.split()]
        varied += [base | {name: f'"{clock}"'} for name in ("at", "durable_at") for clock in CLOCKS]
        varied += [base | {"colour": "1"}, base | {"attempt_no": "2"}, base | {"resource_id": '"i-2"'}]
        varied += [{name: value for name, value in base.items() if name != gone} for gone in base]
        lines += [("{%s}", ": ", ", ", line) for line in varied] + [(" {%s}\r", " :", ",", line) for line in varied]
    # What names no run is skipped, and a wrong line sets its run aside, so each has its own.
    texts = [
        frame.replace("%s", comma.join(f'"{k}"{colon}{v}' for k, v in (line | {"run_id": f'"r{number}"'}).items()))
        for number, (frame, colon, comma, line) in enumerate(lines)
    ]
    together = read(tmp_path / "a", "\n".join(texts) + "\n")
    monkeypatch.setattr(event_log, "plain_events", lambda lines, known: ({}, lines))
    alone = read(tmp_path / "b", "\n".join(texts) + "\n")
    assert [text.replace("/a/", "/b/") for text in together.warnings] == alone.warnings
    for table, frame in alone.tables.items():
        assert_frame_equal(together.tables[table], frame)
    assert len(alone.warnings) > 500 and alone.tables["tracker_checkpoint"].height > 100


@pytest.mark.parametrize("odd", ["01}", "1} x", "1", '1, "step": 1}', "+1}", "1,}"])
def test_what_is_no_json_is_never_read_in_a_block(odd: str) -> None:
    line = '{"event": "heartbeat", "run_id": "r", "at": "2026-07-01T10:00:00Z", "step": '
    lines = pl.DataFrame({"file_no": 0, "line_no": [1, 2], "line": [line + "1}", line + odd]})
    found, left = event_log.plain_events(lines, {})
    assert ([frame["line_no"].to_list() for frame in found["heartbeat"]], left["line_no"].to_list()) == ([[1]], [2])


def test_a_rank_that_joins_late_on_an_empty_disk_is_of_the_attempt_of_the_others(tmp_path: Path) -> None:
    """At 11:00 i-2 joins: i-1 begins attempt 2, i-2 counts from 1. Attempt 1 ended then at the latest, not at 12:00."""
    first = text(
        event("attempt_started", "10:00:00", attempt=1), event("resource_joined", "10:00:01", attempt=1, resource="i-1")
    )
    second = text(
        event("attempt_started", "11:00:00", attempt=2),
        event("resource_joined", "11:00:01", attempt=2, resource="i-1"),
        event("attempt_ended", "12:00:00", attempt=2, reason="completed"),
    )
    joiner = text(
        event("attempt_started", "10:59:58", attempt=1),
        event("resource_joined", "10:59:59", attempt=1, resource="i-2"),
        event("attempt_ended", "12:00:01", attempt=1, reason="completed"),
    )
    records = read(tmp_path, first, second, joiner)
    assert rows(records, "attempt", "attempt_no", "ended_at") == [(1, None), (2, at("12:00:01"))]
    stays = rows(records, "resource", "attempt_no", "resource_id", "joined_at")
    assert stays == [(1, "i-1", at("10:00:01")), (2, "i-1", at("11:00:01")), (2, "i-2", at("10:59:59"))]


def test_a_late_start_counts_the_same_in_one_file_and_in_many(tmp_path: Path) -> None:
    """Attempt 1 begins again 5 minutes after attempt 2: what follows is of attempt 2, whichever file has it."""
    lines = [
        event("attempt_started", "10:00:00", attempt=1),
        event("resource_joined", "10:00:00", attempt=1, resource="i-1"),
        event("attempt_started", "11:00:00", attempt=2),
        event("attempt_started", "11:05:00", attempt=1),
        event("resource_left", "11:06:00", attempt=1, resource="i-1"),
        event("resource_joined", "11:07:00", attempt=2, resource="i-1"),
        event("attempt_ended", "12:00:00", attempt=1, reason="oom"),
    ]
    for number, files in enumerate(([lines], [lines, lines[-1:]], [[line] for line in lines])):
        (tmp_path / str(number)).mkdir()
        records = read(tmp_path / str(number), *(text(*file) for file in files))
        attempts = rows(records, "attempt", "attempt_no", "started_at", "ended_at")
        assert attempts == [(1, at("10:00:00"), None), (2, at("11:00:00"), at("12:00:00"))]
        stays = rows(records, "resource", "attempt_no", "joined_at", "left_at")
        assert stays == [(1, at("10:00:00"), at("11:06:00")), (2, at("11:07:00"), None)]


def test_an_instance_is_known_by_its_arn(tmp_path: Path) -> None:
    arn = "arn:aws:ec2:us-west-2:000033334444:instance/i-0abc"
    records = read(tmp_path, text(event("resource_joined", "10:00:00", resource=arn)))
    assert rows(records, "resource", "resource_id") == [("i-0abc",)]
