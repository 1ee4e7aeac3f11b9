"""Files of run events: where they lie, how they end, and what in them is passed over."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from support.event_log import DESIGN, at, event, read, source, text
from support.records import rows

from pipelines.base.errors import UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.tracker import read_runs, runs_fingerprint
from pipelines.warehouse.stores import open_store


def test_unknown_events_and_fields_are_counted_and_passed_over(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        text(
            event("run_started", "10:00:00", colour="red", seed=7),
            event("heartbeat", "10:01:00", colour="red"),
            event("heartbeat", "10:02:00", colour="blue"),
            event("gpu_hiccup", "10:03:00", colour="blue", attempt=1),
        ),
    )
    file = tmp_path / "runs" / "deep-0" / "rank.jsonl"
    assert records.warnings == [
        f"{file} line 1: unknown field 'colour' of run_started skipped; correct its name.",
        f"{file} line 2: unknown field 'colour' of heartbeat skipped here and in 1 more line; correct its name.",
        f"{file} line 4: unknown kind 'gpu_hiccup' skipped; correct the kind.",
    ]
    # Whatever it was, the run was alive.
    assert rows(records, "attempt", "attempt_no", "last_seen_at") == [(1, at("10:03:00"))]


def test_a_last_line_cut_by_a_crash_is_passed_over(tmp_path: Path) -> None:
    whole = text(event("run_started", "10:00:00"))
    cut = text(event("heartbeat", "11:00:00"))[:-9]
    records = read(tmp_path, whole + cut)
    assert rows(records, "run", "last_seen_at") == [(at("10:00:00"),)]
    file = tmp_path / "runs" / "deep-0" / "rank.jsonl"
    assert records.warnings == [
        f"{file} ends in the middle of line 2; that event is skipped. Write it again if it is lost."
    ]


def test_blank_lines_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    events = text(event("run_started", "10:00:00"), event("run_ended", "11:00:00")).replace("\n", "\r\n\r\n")
    records = read(tmp_path, b"\xef\xbb\xbf" + events.encode())
    assert rows(records, "run", "started_at", "ended_at") == [(at("10:00:00"), at("11:00:00"))]
    assert records.warnings == []


def test_gzip_files_and_files_that_are_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(DESIGN.encode()))
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "_SUCCESS").touch()
    records = read_runs(source(tmp_path))
    assert rows(records, "run", "run_id") == [("llama8b-42",)]
    (warning,) = records.warnings
    assert warning.startswith(f"{tmp_path}: notes.txt is skipped")


def test_the_same_story_from_s3(tmp_path: Path, s3_endpoint: str) -> None:
    import boto3

    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="runs")
    store = open_store("s3://runs/trainledger", endpoint_url=s3_endpoint)
    store.write("team/run/rank-0.jsonl", DESIGN.encode())
    store.write("team/run/rank-1.jsonl.gz", gzip.compress(DESIGN.encode()))
    there = RunSource(name="jobs", location="s3://runs/trainledger", endpoint_url=s3_endpoint)
    here = read(tmp_path, DESIGN)
    assert all(frame.equals(here.tables[table]) for table, frame in read_runs(there).tables.items())


def test_a_key_that_may_lead_elsewhere_is_skipped_alone(tmp_path: Path, s3_endpoint: str) -> None:
    """As of `aws s3 cp` to an address with a slash too many."""
    import boto3

    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket="runs")
    for key in ("jobs/rank-0.jsonl", "jobs//rank-0.jsonl"):
        client.put_object(Bucket="runs", Key=key, Body=DESIGN.encode())
    records = read_runs(RunSource(name="jobs", location="s3://runs/jobs", endpoint_url=s3_endpoint))
    assert rows(records, "run", "run_id") == [("llama8b-42",)]
    (warning,) = records.warnings
    assert "'/rank-0.jsonl' is not a path inside s3://runs/jobs (it is an absolute path); rename or" in warning


def test_an_unchanged_source_keeps_its_fingerprint(tmp_path: Path) -> None:
    read(tmp_path, DESIGN)
    jobs = source(tmp_path / "runs")
    before = runs_fingerprint(jobs)
    assert runs_fingerprint(jobs) == before
    with (tmp_path / "runs" / "deep-0" / "rank.jsonl").open("a") as file:
        file.write(text(event("heartbeat", "16:00:00")))
    assert runs_fingerprint(jobs) != before


def test_an_unknown_kind_of_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError,
        match=r"\[\[runs\]\] jobs: kind 'diary' is not supported; write one of batch, checkpoints, events, kubernetes",
    ):
        read_runs(source(tmp_path, kind="diary"))


def test_a_long_file_is_read_in_pieces(tmp_path: Path) -> None:
    # Over 50,000 events of a kind and several MiB, so that no piece ends with a line.
    steps = range(60_000)
    events = [event("evaluation", "10:00:00.5", metric="loss", value=step, step=step) for step in steps]
    for step, line in enumerate(events):
        line["at"] = f"2026-07-{1 + step // 3600:02}T10:{step // 60 % 60:02}:{step % 60:02}Z"
    records = read(tmp_path, text(event("run_started", "10:00:00"), *events))
    assert records.tables["tracker_evaluation"]["value"].sort().to_list() == [float(step) for step in steps]


@pytest.mark.parametrize("mib", [63, 65])
def test_a_small_file_that_unpacks_to_more_than_any_log_is_skipped(tmp_path: Path, mib: int) -> None:
    """Spaces pack a thousand times. Up to 64 MiB they are read all the same: a short log of equal lines is harmless."""
    file = tmp_path / "rank.jsonl.gz"
    spaces = (b" " * 1_023 + b"\n") * (mib << 10)
    file.write_bytes(gzip.compress(text(event("run_started", "10:00:00")).encode() + spaces))
    records = read_runs(source(tmp_path))
    assert records.tables["tracker_run"].height == 1
    expected = f"{file} unpacks to more than 200 times its {file.stat().st_size:,} bytes; check"
    assert [warning.startswith(expected) for warning in records.warnings] == ([] if mib < 64 else [True])
