"""Slurm's accounting as runs: attempts, stays on nodes, names that change hands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.records import at, rows, source

from pipelines.base.errors import UsageError
from pipelines.ingest.runs.records import UNREAD, RunRecords
from pipelines.ingest.runs.slurm import hostlist
from pipelines.ingest.runs.tracker import read_runs

Rows = list[dict[str, Any]]


SACCT = """\
JobIDRaw|JobName|User|Account|State|Submit|Start|End|NNodes|NodeList|AllocTRES
77|pretrain|ada|nlp|REQUEUED|2026-07-01T09:00:00|2026-07-01T10:00:00|2026-07-01T12:00:00|2|q1-dy-trn1-[1-2]|billing=2,cpu=256,gres/neuron=32,node=2
77|pretrain|ada|nlp|COMPLETED|2026-07-01T12:00:00|2026-07-01T12:10:00|2026-07-01T15:00:00|2|q1-dy-trn1-[2-3]|billing=2,cpu=256,gres/neuron=32,node=2
78|sweep|ada|nlp|CANCELLED by 1001|2026-07-01T09:00:00|Unknown|2026-07-01T09:30:00|1|None assigned|
79|eval|bob|vision|RUNNING|2026-07-01T09:00:00|2026-07-01T14:00:00|Unknown|1|gpu-1|billing=1,gres/gpu:h100=8,node=1
"""
NODES = """\
node,started_at,ended_at,instance_id,instance_type
q1-dy-trn1-1,2026-07-01T09:50:00,2026-07-01T12:05:00,i-01,trn1.32xlarge
q1-dy-trn1-2,2026-07-01T09:50:00,2026-07-01T13:00:00,i-02,trn1.32xlarge
q1-dy-trn1-2,2026-07-01T13:05:00,,i-09,trn1.32xlarge
q1-dy-trn1-3,2026-07-01T12:05:00,,i-03,trn1.32xlarge
"""


def slurm(root: Path, text: str = SACCT, **more: str) -> RunRecords:
    root.mkdir(exist_ok=True)
    (root / "jobs.txt").write_text(text)
    (root / "nodes.csv").write_text(NODES)
    return read_runs(source("slurm", root, **more))


def test_a_requeued_job_is_one_run_of_two_attempts(tmp_path: Path) -> None:
    records = slurm(tmp_path)
    assert rows(records, "run", "run_id", "status", "owner", "team", "experiment") == [
        ("lab-77", "completed", "ada", "nlp", "pretrain"),
        ("lab-79", None, "bob", "vision", "eval"),
    ]
    assert rows(records, "attempt", "run_id", "attempt_no", "started_at", "ended_at", "end_reason") == [
        ("lab-77", 1, at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), "preempted"),
        ("lab-77", 2, at("2026-07-01T12:10:00"), at("2026-07-01T15:00:00"), "completed"),
        ("lab-79", 1, at("2026-07-01T14:00:00"), None, None),
    ]


def test_a_running_job_was_seen_for_as_long_as_it_has_run(tmp_path: Path) -> None:
    """Ten hours from 10:00 on: a job that had another part of its node meanwhile does not show that it is over."""
    header, job = "JobIDRaw|State|Start|End|ElapsedRaw|NodeList", "7|RUNNING|2026-07-01T10:00:00|Unknown|36000|q-1"
    records = slurm(tmp_path, f"{header}\n{job}\n")
    assert rows(records, "attempt", "ended_at", "last_seen_at") == [(None, at("2026-07-01T20:00:00"))]
    assert rows(records, "run", "last_seen_at") == [(at("2026-07-01T20:00:00"),)]


def test_a_node_name_taken_over_by_a_new_instance_is_two_stays(tmp_path: Path) -> None:
    """q1-dy-trn1-2 was i-02 until 13:00 and i-09 from 13:05; 32 chips of 2 nodes are 16 each."""
    records = slurm(tmp_path)
    stays = records.tables["tracker_resource"].filter(pl.col("run_id") == "lab-77")
    columns = ("attempt_no", "resource_id", "joined_at", "left_at", "accelerators_used")
    assert sorted(stays.select(columns).rows()) == [
        (1, "i-01", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), 16),
        (1, "i-02", at("2026-07-01T10:00:00"), at("2026-07-01T12:00:00"), 16),
        (2, "i-02", at("2026-07-01T12:10:00"), at("2026-07-01T13:00:00"), 16),
        (2, "i-03", at("2026-07-01T12:10:00"), at("2026-07-01T15:00:00"), 16),
        (2, "i-09", at("2026-07-01T13:05:00"), at("2026-07-01T15:00:00"), 16),
    ]
    assert records.warnings == [
        "Run lab-79: no nodes.csv maps node gpu-1 to an instance; its cost is not found unless another source "
        "names it. Add the node."
    ]


def test_a_node_that_two_rows_map_to_one_instance_is_held_once(tmp_path: Path) -> None:
    """One row has i-03 from 12:10 to 13:00, the other from 12:30 on: until the job ends at 15:00, or still runs."""
    slurm(tmp_path)
    more = "q1-dy-trn1-3,2026-07-01T12:05:00,2026-07-01T13:00:00,i-03,\nq1-dy-trn1-3,2026-07-01T12:30:00,,i-03,\n"
    (tmp_path / "nodes.csv").write_text(NODES + more)
    running = SACCT.replace("COMPLETED", "RUNNING").replace("2026-07-01T15:00:00", "Unknown")
    for text, end in ((SACCT, at("2026-07-01T15:00:00")), (running, None)):
        (tmp_path / "jobs.txt").write_text(text)
        stays = read_runs(source("slurm", tmp_path)).tables["tracker_resource"].filter(pl.col("resource_id") == "i-03")
        assert stays.select("joined_at", "left_at", "instance_type").rows() == [
            (at("2026-07-01T12:10:00"), end, "trn1.32xlarge")
        ]


def test_a_prologs_log_records_which_instance_a_name_was(tmp_path: Path) -> None:
    """12:10 to 15:00 on q1-dy-trn1-2 and -3: -2 was i-02 at 09:55 and i-09 at 13:05; a cut line is left out."""
    slurm(tmp_path)
    (tmp_path / "nodes.csv").unlink()
    clocks = (
        ("09:55", 1, "i-01"),
        ("09:55", 2, "i-02"),
        ("12:10", 2, "i-02"),
        ("12:10", 3, "i-03"),
        ("13:05", 2, "i-09"),
    )
    lines = [f"2026-07-01T{clock}:00Z q1-dy-trn1-{n} {instance} trn1.32xlarge" for clock, n, instance in clocks]
    (tmp_path / "nodes.log").write_text("\n".join([*lines, "17829"]))
    stays = read_runs(source("slurm", tmp_path)).tables["tracker_resource"].filter(pl.col("attempt_no") == 2)
    columns = ("resource_id", "joined_at", "left_at", "evidence")
    assert sorted(stays.select(columns).rows()) == [
        ("i-02", at("2026-07-01T12:10:00"), at("2026-07-01T13:05:00"), "nodemap"),
        ("i-03", at("2026-07-01T12:10:00"), at("2026-07-01T15:00:00"), "nodemap"),
        ("i-09", at("2026-07-01T13:05:00"), at("2026-07-01T15:00:00"), "nodemap"),
    ]
    (tmp_path / "nodes.log").write_text("who knows\n" + "\n".join(lines))
    found = read_runs(source("slurm", tmp_path))
    assert any("nodes.log, line 1 is not time, node, instance id and type" in warning for warning in found.warnings)
    assert stays.equals(found.tables["tracker_resource"].filter(pl.col("attempt_no") == 2))


def test_jobs_of_two_clusters_with_one_number_are_two_runs(tmp_path: Path) -> None:
    """Job 7 completed on one cluster and failed on another; its 3 GPUs on two nodes are 2 and 1."""
    records = slurm(
        tmp_path,
        "JobIDRaw|Cluster|State|Start|End|NodeList|AllocTRES\n"
        "7|blue|COMPLETED|2026-07-01T10:00:00|2026-07-01T12:00:00|b-[1-2]|gres/gpu=3,node=2\n"
        "7|red|FAILED|2026-07-02T10:00:00|2026-07-02T11:00:00|r-1|gres/gpu=8,node=1\n",
    )
    assert rows(records, "run", "run_id", "status") == [("lab-7", "completed"), ("lab-7@2", "failed")]
    assert rows(records, "resource", "run_id", "resource_id", "accelerators_used") == [
        ("lab-7", "b-1", 2),
        ("lab-7", "b-2", 1),
        ("lab-7@2", "r-1", 8),
    ]


def test_a_job_may_name_its_run(tmp_path: Path) -> None:
    comment = SACCT.replace("AllocTRES\n", "AllocTRES|Comment\n").replace(
        "node=2\n", "node=2|trainledger.run_id=llama\n"
    )
    lines = [line if line.count("|") == 11 else f"{line}|" for line in comment.splitlines()]
    records = slurm(tmp_path, "\n".join(lines))
    assert rows(records, "run", "run_id") == [("lab-79",), ("llama",)]
    assert records.declared == {"llama"}


def test_the_record_with_an_end_counts_whatever_its_file_is_called(tmp_path: Path) -> None:
    """Job 79 ran at the first output and had completed by the second, whose name comes before that of the first."""
    ended = SACCT.replace("RUNNING", "COMPLETED").replace("T14:00:00|Unknown", "T14:00:00|2026-07-01T16:00:00")
    (tmp_path / "10.txt").write_text(ended)
    records = slurm(tmp_path)
    assert rows(records, "run", "run_id", "status", "ended_at")[1] == ("lab-79", "completed", at("2026-07-01T16:00:00"))


def test_slurm_times_are_the_clusters(tmp_path: Path) -> None:
    """10:00 in Oslo in July is 08:00 UTC."""
    records = slurm(tmp_path, timezone="Europe/Oslo")
    assert rows(records, "run", "started_at")[0] == (at("2026-07-01T08:00:00"),)


AUTUMN = "JobIDRaw|State|Submit|Start|End|ElapsedRaw|NNodes|NodeList\n"


def autumn(*times: str, state: str = "COMPLETED") -> str:
    """A job a line of Submit, Start, End and ElapsedRaw in the night in which Oslo goes from UTC+2 to UTC+1 at 3:00."""
    lines = []
    for number, line in enumerate(times):
        *clocks, elapsed = line.split()
        shown = [f"2026-10-25T{clock}:00" if ":" in clock else clock for clock in clocks]
        lines.append("|".join([str(number), state, *shown, elapsed.strip("-"), "1", "n1"]))
    return AUTUMN + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("times", "begin", "end"),
    [
        # An hour from half past two to half past two: from the first of the two hours to the second.
        ("02:29 02:30 02:30 3600", "00:30", "01:30"),
        ("02:29 02:50 02:10 1200", "00:50", "01:10"),
        # Forty minutes before 3:10 UTC+1 and one hundred before it.
        ("02:29 02:30 03:10 2400", "01:30", "02:10"),
        ("02:29 02:30 03:10 6000", "00:30", "02:10"),
        # It was submitted after the clock first showed 2:30, or after the clocks had gone back for good.
        ("02:40 02:30 03:10 -", "01:30", "02:10"),
        ("03:20 03:30 05:00 5400", "02:30", "04:00"),
        # The running one of the same day.
        ("02:40 02:30 Unknown 60", "01:30", None),
    ],
)
def test_a_time_in_the_hour_that_repeats_is_known_by_how_long_the_job_ran(
    times: str, begin: str, end: str | None, tmp_path: Path
) -> None:
    records = slurm(tmp_path, autumn(times), timezone="Europe/Oslo")
    expected = (at(f"2026-10-25T{begin}"), end and at(f"2026-10-25T{end}"))
    assert rows(records, "attempt", "started_at", "ended_at") == [expected]


@pytest.mark.parametrize(
    ("times", "name", "clock", "seen"),
    [
        ("02:00 02:10 02:40 1800", "Start", "02:10", "01:40"),
        ("01:00 01:30 02:10 -", "End", "02:10", "01:10"),
        ("01:00 02:10 Unknown 60", "Start", "02:10", None),
        # Suspended for a minute: neither time fits.
        ("01:00 01:30 02:10 2340", "End", "02:10", "01:10"),
    ],
)
def test_a_run_whose_time_may_be_either_hour_is_set_aside(
    times: str, name: str, clock: str, seen: str | None, tmp_path: Path
) -> None:
    records = slurm(tmp_path, autumn(times), timezone="Europe/Oslo")
    assert rows(records, "run", "run_id") == []
    assert rows(records, "attempt", "run_id") == []
    assert rows(records, "unread_run", "run_id", "last_seen_at") == [("lab-0", seen and at(f"2026-10-25T{seen}"))]
    assert records.warnings[-1] == (
        f"Run 'lab-0' is set aside, so what its machines cost is no run's: {tmp_path}/jobs.txt, line 2: {name} "
        f"'2026-10-25T{clock}:00' is in an hour that the clocks repeat, and may be the first or the second; write it "
        "with SLURM_TIME_FORMAT=%s."
    )


def test_a_later_record_clears_an_earlier_one(tmp_path: Path) -> None:
    """While it ran, its start at half past two could be either; once it had ended, 40 minutes later, not."""
    tmp_path.joinpath("first.txt").write_text(autumn("02:00 02:30 Unknown 60", state="RUNNING"))
    records = slurm(tmp_path, autumn("02:00 02:30 03:10 2400"), timezone="Europe/Oslo")
    assert rows(records, "attempt", "started_at", "ended_at") == [(at("2026-10-25T01:30"), at("2026-10-25T02:10"))]


def test_a_time_in_the_hour_that_spring_leaves_out_is_read(tmp_path: Path) -> None:
    """Half past two on 29 March is no time in Oslo; by the clock before the change it is 1:30 UTC."""
    text = AUTUMN + "0|COMPLETED|2026-03-29T01:00:00|2026-03-29T02:30:00|2026-03-29T05:00:00|5400|1|n1\n"
    records = slurm(tmp_path, text, timezone="Europe/Oslo")
    assert rows(records, "attempt", "started_at", "ended_at") == [(at("2026-03-29T01:30"), at("2026-03-29T03:00"))]


def test_a_node_that_changes_hands_in_the_hour_that_repeats_has_no_run_in_it(tmp_path: Path) -> None:
    """From 0:30 to 1:30 UTC n1 may be i-1 or i-2; i-3 had it for less than that hour, if at all."""
    slurm(tmp_path, autumn("01:00 01:30 04:00 12600"))
    turns = ("2026-10-25T01:00:00,2026-10-25T02:30:00,i-1", "2026-10-25T02:30:00,,i-2")
    lines = "".join(f"n1,{turn},p5.48xlarge\n" for turn in (*turns, "2026-10-25T02:20:00,2026-10-25T02:50:00,i-3"))
    (tmp_path / "nodes.csv").write_text(NODES.splitlines()[0] + f"\n{lines}")
    log = "".join(
        f"2026-10-25T{clock}:00 n1 {name} p5.48xlarge\n" for clock, name in (("01:00", "i-1"), ("02:30", "i-2"))
    )
    for _ in ("nodes.csv", "nodes.log"):
        records = read_runs(source("slurm", tmp_path, timezone="Europe/Oslo"))
        assert rows(records, "resource", "resource_id", "joined_at", "left_at") == [
            ("i-1", at("2026-10-24T23:30"), at("2026-10-25T00:30")),
            ("i-2", at("2026-10-25T01:30"), at("2026-10-25T03:00")),
        ]
        assert "'2026-10-25T02:30:00' is in an hour that the clocks repeat" in records.warnings[0]
        assert records.warnings[0].endswith(" Until then no run has that hour of the node.")
        (tmp_path / "nodes.csv").unlink(missing_ok=True)
        (tmp_path / "nodes.log").write_text(log)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-1", ["gpu-1"]),
        ("q1-[1-3]", ["q1-1", "q1-2", "q1-3"]),
        ("q1-[08-10,12],head", ["q1-08", "q1-09", "q1-10", "q1-12", "head"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_host_lists(text: str, names: list[str]) -> None:
    assert hostlist(text) == names


@pytest.mark.parametrize(
    "text",
    ["", "[", "x[", "x]", "x[1", "x[]", "x[-1]", "x[a]", "x[3-1]", "x[1][", "x[[1]]", "[" * 100_000,
     "x[1]" * 1_000, f"x[{'0' * 300}-9]", "x" * 300, "x[3-1][1-999999999]"],
)  # fmt: skip
def test_what_is_no_host_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not a host list$"):
        hostlist(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("x[1-300][1-400]", "120,000"), ("x[1-60000],y[1-60000]", "120,000"), (f"x[1-{'9' * 100}]", "9,9.*9,999")],
)
def test_nodes_are_counted_before_they_are_named(text: str, count: str) -> None:
    with pytest.raises(ValueError, match=rf"^names {count} nodes where the job has at most 100,000$"):
        hostlist(text)


def test_a_job_has_no_more_nodes_than_its_record_counts(tmp_path: Path) -> None:
    """Three are listed where NNodes is 2: which two they were is unknown. The first attempt keeps its own."""
    records = slurm(tmp_path, SACCT.replace("[2-3]", "[1-3]"))
    assert rows(records, "resource", "run_id", "attempt_no") == [("lab-77", 1), ("lab-77", 1), ("lab-79", 1)]
    assert records.warnings[0] == (
        "Run lab-77: NodeList 'q1-dy-trn1-[1-3]' names 3 nodes where the job has at most 2; its nodes are unknown and "
        "its cost is not found. Export the job with sacct again."
    )


def test_what_is_no_sacct_output_is_left_out_by_name(tmp_path: Path) -> None:
    """A line that is cut short leaves the other jobs in place."""
    (warning,) = slurm(tmp_path, "JobID|State\n1|COMPLETED\n").warnings
    assert "jobs.txt has no column JobIDRaw; write it with `sacct" in warning
    whole = slurm(tmp_path, SACCT)
    found = slurm(tmp_path, SACCT.replace("\n", "\n77|a|b\n", 1))
    assert any("jobs.txt, line 2 has 3 of 11 fields; fix it" in warning for warning in found.warnings)
    assert found.tables["tracker_run"].equals(whole.tables["tracker_run"])
    assert found.tables[UNREAD]["run_id"].to_list() == [None]
    with pytest.raises(UsageError, match="timezone 'Mars/Base' is unknown"):
        slurm(tmp_path, timezone="Mars/Base")
