"""Slurm's accounting as runs: attempts, stays on nodes, names that change hands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.records import at, rows, source

from pipelines.base.errors import SourceError, UsageError
from pipelines.ingest.runs.records import RunRecords
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
        "Run lab-79: no nodes.csv maps node gpu-1 to an instance; its cost is not found. Add the node."
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
    with pytest.raises(SourceError, match=r"nodes\.log, line 1 is not time, node, instance id and type"):
        read_runs(source("slurm", tmp_path))


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


def test_what_is_no_sacct_output_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"jobs\.txt has no column JobIDRaw"):
        slurm(tmp_path, "JobID|State\n1|COMPLETED\n")
    with pytest.raises(SourceError, match=r"jobs\.txt, line 2 has 3 of 11 fields"):
        slurm(tmp_path, SACCT.splitlines()[0] + "\n77|a|b\n")
    with pytest.raises(UsageError, match="timezone 'Mars/Base' is unknown"):
        slurm(tmp_path, timezone="Mars/Base")
