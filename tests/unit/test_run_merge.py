"""Two sources that record one run: brought together where it was declared, kept apart where not, and charged once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.two_sources import events, wandb

from pipelines.base.errors import SourceError
from pipelines.base.parse import reading
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords
from pipelines.ingest.runs.tracker import read_all


def rows(records: RunRecords, table: str, *columns: str) -> list[tuple]:
    return sorted(records.tables[f"tracker_{table}"].select(columns).rows(), key=str)


def stays(records: RunRecords) -> list[tuple]:
    found = rows(records, "resource", "run_id", "resource_id", "attempt_no", "joined_at", "left_at", "source_name")
    return [(run, node, no, f"{a:%H:%M}", f"{b:%H:%M}", by) for run, node, no, a, b, by in found]


def test_a_declared_run_is_one_and_its_node_is_charged_once(tmp_path: Path) -> None:
    """The source on the machine records when i-01 was held; no other names i-02; the nearer source names the model."""
    records = read_all([wandb(tmp_path / "w", **{"trainledger.run_id": "r1"}), events(tmp_path / "e")])
    facts = rows(records, "run", "run_id", "model", "dataset", "status", "source_name", "source_system")
    assert facts == [("r1", "llama", "corp", "completed", "jobs", "events")]
    assert [row[0] for row in rows(records, "attempt", "attempt_no")] == [1, 2]
    assert stays(records) == [
        ("r1", "i-01", 1, "10:00", "11:00", "jobs"),
        ("r1", "i-01", 2, "12:00", "13:00", "jobs"),
        ("r1", "i-02", 1, "09:59", "13:01", "wandb"),
    ]
    # The score of 12:30 was made in the second attempt, which W&B knows nothing of.
    assert rows(records, "evaluation", "attempt_no", "metric", "value") == [(2, "val_loss", 2.0)]
    assert records.warnings == [
        "Run 'r1' held i-01 for 7200 s by jobs and 10920 s by wandb; jobs counts. Correct the "
        "other, or remove the node from it."
    ]


def test_a_machine_of_a_kind_is_the_one_that_another_source_names(tmp_path: Path) -> None:
    """W&B knows the type alone, the run itself i-01: a second machine would be charged for nothing."""
    kind = {
        "aws.resource_ids": None,
        "aws.instance_type": "p5.48xlarge",
        "aws.account_id": "1",
        "aws.region": "eu-west-1",
    }
    alone = read_all([wandb(tmp_path / "a", **kind)])
    assert rows(alone, "resource", "resource_id", "evidence") == [("any p5.48xlarge", "type_match")]
    for declared in ({"trainledger.run_id": "r1"}, {}):
        records = read_all(
            [wandb(tmp_path / f"w{len(declared)}", **kind, **declared), events(tmp_path / f"e{len(declared)}")]
        )
        assert {row[0] for row in rows(records, "resource", "resource_id")} == {"i-01"}


@pytest.mark.parametrize(("nodes", "held"), [("q-1", {"i-01"}), ("q-[1-2]", {"i-01", "q-1", "q-2"})])
def test_a_node_by_its_name_is_the_instance_that_another_source_names(
    tmp_path: Path, nodes: str, held: set[str]
) -> None:
    """The run names i-01 and Slurm, without a node map, q-1: one machine. With q-2 there is one that nothing shows."""
    (tmp_path / "day.sacct").write_text(
        "JobIDRaw|State|Start|End|NodeList|Comment\n"
        f"7|COMPLETED|2026-07-01T10:00:00|2026-07-01T11:00:00|{nodes}|trainledger.run_id=r1\n"
    )
    slurm = RunSource(name="cluster", kind="slurm", location=str(tmp_path))
    assert {row[1] for row in stays(read_all([slurm, events(tmp_path / "e")]))} == held


@pytest.mark.parametrize(("near", "far"), [("tune-7", "training-job/Tune-7"), ("training-job/tune-7", "Tune-7")])
def test_a_job_in_two_spellings_is_one_machine(tmp_path: Path, near: str, far: str) -> None:
    """A SageMaker job by its name alone and by the end of its ARN: held as the nearer source records it, once."""
    kind = {"aws.resource_ids": far, "aws.instance_type": "ml.p5.48xlarge", "trainledger.run_id": "r1"}
    own = events(tmp_path / "e")
    path = tmp_path / "e" / "rank0.jsonl"
    path.write_text(path.read_text().replace("i-01", near))
    assert [(row[1], row[-1]) for row in stays(read_all([wandb(tmp_path / "w", **kind), own]))] == [
        ("tune-7", "jobs"),
        ("tune-7", "jobs"),
    ]


def test_order_of_the_sources_changes_nothing(tmp_path: Path) -> None:
    one, two = events(tmp_path / "e"), wandb(tmp_path / "w", **{"trainledger.run_id": "r1"})
    here, there = read_all([one, two]), read_all([two, one])
    for table, frame in here.tables.items():
        assert sorted(frame.rows(), key=str) == sorted(there.tables[table].rows(), key=str)


def test_one_undeclared_name_is_two_runs_and_reported(tmp_path: Path) -> None:
    records = read_all([events(tmp_path / "e"), wandb(tmp_path / "w")])
    assert rows(records, "run", "run_id", "source_name") == [("r1", "jobs"), ("r1@wandb", "wandb")]
    assert {row[0] for row in rows(records, "evaluation", "run_id")} == {"r1@wandb"}
    # Of i-01 it keeps what the other does not hold: before 10, 11 to 12 and after 13.
    assert sorted(row[1:5] for row in stays(records) if row[0] == "r1@wandb") == [
        ("i-01", 1, "09:59", "10:00"),
        ("i-01", 1, "11:00", "12:00"),
        ("i-01", 1, "13:00", "13:01"),
        ("i-02", 1, "09:59", "13:01"),
    ]
    (warning,) = records.warnings
    assert warning.startswith("Run 'r1' is recorded by the [[runs]] sources jobs and wandb, and neither declares")


def test_two_prefixes_of_events_with_one_name_are_two_runs(tmp_path: Path) -> None:
    records = read_all([events(tmp_path / "a", "one"), events(tmp_path / "b", "two")])
    assert rows(records, "run", "run_id", "source_name") == [("r1", "one"), ("r1@two", "two")]


def test_saves_found_in_a_folder_are_those_the_run_recorded(tmp_path: Path) -> None:
    """Step 100 is recorded by both and is one save; step 200 only the listing knows."""
    for step in (100, 200):
        folder = tmp_path / "saves" / "r1" / f"step-{step}"
        folder.mkdir(parents=True)
        (folder / "__0_0.distcp").write_text("0123456789")
        if step == 200:
            (folder / ".metadata").write_text("0")
    saves = RunSource(name="saves", kind="checkpoints", location=str(tmp_path / "saves"))
    records = read_all([events(tmp_path / "e"), saves])
    found = rows(records, "checkpoint", "step", "bytes", "is_complete", "source_name")
    # The listing shows that step 100 never got its marker, whatever the run believed.
    assert found == [(100, 10, False, "jobs"), (200, 11, True, "saves")]
    assert rows(records, "run", "run_id", "source_name") == [("r1", "jobs")]


def test_what_a_precompile_saves_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "saves/r1/step-10").mkdir(parents=True)
    for name in ("__0_0.distcp", ".metadata"):
        (tmp_path / "saves/r1/step-10" / name).write_text("0")
    saves = RunSource(name="saves", kind="checkpoints", location=str(tmp_path / "saves"))
    records = read_all([events(tmp_path / "e", purpose="compile_only"), saves])
    assert {row for row in rows(records, "checkpoint", "is_complete")} == {(False,)}


def test_a_value_of_any_length_makes_a_sentence_that_can_be_read() -> None:
    with pytest.raises(SourceError, match=r"could not convert string to float: 'x{400}") as caught, reading("a.txt"):
        float("x" * 70_000)
    assert len(str(caught.value)) < 600 and str(caught.value).endswith("…; fix it where it was written.")
