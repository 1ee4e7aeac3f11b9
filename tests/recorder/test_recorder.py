"""The recorder: what it writes is what the pipeline reads, and nothing that goes wrong reaches the training."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.imds import metadata_service
from support.records import rows

from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import RunRecords
from pipelines.ingest.runs.tracker import read_runs

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "recorder"))

from trainledger_recorder import HuggingFaceCallback, LightningCallback, Recorder  # noqa: E402

NOWHERE = "http://127.0.0.1:9"


def read_back(folder: Path) -> RunRecords:
    return read_runs(RunSource(name="jobs", location=str(folder)))


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines()]


def test_what_is_recorded_is_read_as_the_same_run(tmp_path: Path) -> None:
    """No warning of the reader's, every fact in its place."""
    with (
        metadata_service() as imds,
        Recorder("r/1", tmp_path, imds=imds, environment={}, accelerators_used=1, model="m", team="nlp") as run,
    ):
        with run.phase("compile"):
            pass
        run.epoch_completed(1, step=10, tokens_seen=1e6)
        saved = tmp_path.parent / "saved.pt"
        with run.checkpoint(step=10, uri=saved):
            saved.write_bytes(b"weights")
        run.evaluation("eval_loss", 2.0, step=10)
        run.evaluation("eval_loss", float("nan"), step=11)
    records = read_back(tmp_path)
    assert records.warnings == []
    assert rows(records, "run", "run_id", "model", "team", "status") == [("r/1", "m", "nlp", "completed")]
    assert rows(records, "attempt", "attempt_no", "end_reason") == [(1, "completed")]
    stay = rows(records, "resource", "resource_id", "instance_type", "account_id", "market", "accelerators_used")
    assert stay == [("i-0rec", "g5.xlarge", "000033334444", "spot", 1)]
    assert rows(records, "resource", "evidence") == [("imds",)]
    assert rows(records, "epoch", "epoch_index", "step", "tokens_seen") == [(1, 10, 1e6)]
    assert rows(records, "checkpoint", "step", "bytes", "is_complete") == [(10, len(b"weights"), True)]
    assert rows(records, "evaluation", "value") == [(2.0,)]


def test_a_failure_of_the_training_ends_its_attempt_and_is_raised(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), Recorder("r", tmp_path, imds=NOWHERE, environment={}):
        raise MemoryError
    assert rows(read_back(tmp_path), "attempt", "end_reason") == [("oom",)]
    assert rows(read_back(tmp_path), "run", "status") == [("failed",)]


@pytest.mark.parametrize(("code", "status"), [(None, "unknown"), (0, "unknown"), (3, "failed")])
def test_an_exit_without_an_error_is_no_failure(tmp_path: Path, code: int | None, status: str) -> None:
    with pytest.raises(SystemExit), Recorder("r", tmp_path, imds=NOWHERE, environment={}):
        sys.exit(code)
    assert rows(read_back(tmp_path), "run", "status") == [(status,)]


def test_a_forked_child_leaves_the_with_block_of_its_parent_open(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from trainledger_recorder import Recorder\n"
        "with Recorder('r', sys.argv[1], imds='http://127.0.0.1:9', environment={}) as run:\n"
        "    child = os.fork()\n"
        "    if not child: raise ValueError('of the child')\n"
        "    os.waitpid(child, 0)\n"
        "    run.epoch_completed(1)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path, ROOT / "recorder"], capture_output=True, timeout=60)
    events = [line["event"] for line in lines(tmp_path)]
    assert events == ["run_started", "attempt_started", "epoch_completed", "attempt_ended", "run_ended"]
    assert rows(read_back(tmp_path), "run", "status") == [("completed",)]


def test_numbers_of_numpy_are_recorded(tmp_path: Path) -> None:
    with Recorder("r", tmp_path, imds=NOWHERE, environment={}, dataset_tokens=np.int64(10)) as run:
        run.epoch_completed(np.int64(1), step=np.int32(7), tokens_seen=np.float32(10))  # type: ignore[arg-type]
    assert rows(read_back(tmp_path), "epoch", "epoch_index", "step", "tokens_seen") == [(1, 7, 10.0)]


WITHOUT_WITH = """
import sys
sys.path.insert(0, sys.argv[2])
from trainledger_recorder import HuggingFaceCallback, Recorder
run = Recorder("r", sys.argv[1], imds=sys.argv[3], environment={}, model="m", dataset="d")
"""


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("run.epoch_completed(1)\nrun.close()\nrun.close()", "completed", "completed"),
        (
            "HuggingFaceCallback(run).on_train_begin(0, 0, 0)\nHuggingFaceCallback(run).on_train_end(0, 0, 0)",
            *["completed"] * 2,
        ),
        ("run.epoch_completed(1)\nraise MemoryError", "failed", "oom"),
        # How it went is unknown: the job may have caught its own failure.
        ("run.epoch_completed(1)\nsys.exit(1)", "unknown", None),
        ("run.epoch_completed(1)\n__import__('os').kill(__import__('os').getpid(), 9)", None, None),
    ],
)
def test_a_run_is_started_and_ended_once_without_a_with_block(
    tmp_path: Path, code: str, status: str | None, reason: str | None
) -> None:
    with metadata_service() as imds:
        command = [sys.executable, "-c", WITHOUT_WITH + code, tmp_path, ROOT / "recorder", imds]
        subprocess.run(command, capture_output=True, timeout=60)
    events = [line["event"] for line in lines(tmp_path)]
    ends = int(status is not None)
    assert [events.count(f"{what}_started") for what in ("run", "attempt")] == [1, 1]
    assert [events.count(f"{what}_ended") for what in ("run", "attempt")] == [ends, ends]
    records = read_back(tmp_path)
    assert rows(records, "run", "model", "dataset", "status") == [("m", "d", status)]
    assert rows(records, "attempt", "end_reason") == [(reason,)]
    if ends:
        assert rows(records, "resource", "resource_id") == [("i-0rec",)]


def test_threads_that_record_first_start_one_attempt(tmp_path: Path) -> None:
    run = Recorder("r", tmp_path, imds=NOWHERE, environment={})
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        run.heartbeat()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.close()
    events = [line["event"] for line in lines(tmp_path)]
    assert events[:2] == ["run_started", "attempt_started"]
    assert sorted(events[2:]) == ["attempt_ended"] + ["heartbeat"] * 8 + ["run_ended"]


def test_a_trainer_that_trains_again_goes_on_with_the_attempt(tmp_path: Path) -> None:
    """Two trainings and an evaluation after each: one attempt, which ends with the second training."""
    with metadata_service() as imds:
        run = Recorder("r", tmp_path, imds=imds, environment={})
        callback = LightningCallback(run)
        trainer = SimpleNamespace(save_checkpoint=lambda filepath: None)
        for _ in range(2):
            callback.on_fit_start(trainer, None)
            deadline = time.monotonic() + 10
            while "resource_joined" not in (line["event"] for line in lines(tmp_path)):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            callback.on_fit_end(None, None)
            time.sleep(0.01)
            run.evaluation("val_loss", 1.0)
        run.close()
    ended_at = [line["at"] for line in lines(tmp_path) if line["event"] == "attempt_ended"]
    assert len(ended_at) == 2
    records = read_back(tmp_path)
    assert records.warnings == []
    (end,) = rows(records, "attempt", "ended_at")[0]
    assert end.isoformat(timespec="milliseconds") + "Z" == ended_at[-1]
    assert len(rows(records, "evaluation", "value")) == len(rows(records, "resource", "resource_id")) == 2


def test_a_callback_leaves_the_end_to_the_with_block(tmp_path: Path) -> None:
    with Recorder("r", tmp_path, imds=NOWHERE, environment={}) as run:
        HuggingFaceCallback(run).on_train_end(None, None, None)
        run.evaluation("eval_loss", 2.0)
    assert [line["event"] for line in lines(tmp_path)][-3:] == ["evaluation", "attempt_ended", "run_ended"]


def test_a_save_that_fails_is_no_checkpoint(tmp_path: Path) -> None:
    with (
        Recorder("r", tmp_path, imds=NOWHERE, environment={}) as run,
        pytest.raises(OSError),
        run.checkpoint(step=1, uri="x"),
    ):
        raise OSError
    assert rows(read_back(tmp_path), "checkpoint", "step") == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 1),
        ({"TORCHELASTIC_RESTART_COUNT": "2", "RANK": "0"}, 3),
        ({"SLURM_RESTART_COUNT": "1", "SLURM_PROCID": "0"}, 2),
        ({"AWS_BATCH_JOB_ATTEMPT": "4"}, 4),
    ],
)
def test_attempts_are_counted_as_launched(tmp_path: Path, environment: dict[str, str], expected: int) -> None:
    with Recorder("r", tmp_path, imds=NOWHERE, environment=environment) as run:
        assert run.attempt == expected


def test_attempts_are_counted_by_files_where_nothing_states_them(tmp_path: Path) -> None:
    # A copy that somebody made is no attempt.
    (tmp_path / "r" / "attempt-1.bak").mkdir(parents=True)
    (tmp_path / "r" / "attempt-1.bak" / "rank-0.jsonl").touch()
    for expected in (1, 2, 3):
        with Recorder("r", tmp_path, imds=NOWHERE, environment={}) as run:
            assert run.attempt == expected


def test_a_rank_that_joins_an_elastic_group_is_of_its_attempt(tmp_path: Path) -> None:
    """torchrun counts no restart when nodes join: two ranks restart as four, an hour after they began."""
    for rank in range(2):
        Recorder("r", tmp_path, imds=NOWHERE, environment={"RANK": str(rank), "TORCHELASTIC_RESTART_COUNT": "0"})
    hour_ago = time.time() - 3600
    os.utime(tmp_path / "r" / "attempt-1", (hour_ago, hour_ago))
    for rank in (3, 0, 1, 2):
        environment = {"RANK": str(rank), "TORCHELASTIC_RESTART_COUNT": "0"}
        assert Recorder("r", tmp_path, imds=NOWHERE, environment=environment).attempt == 2


def test_a_clock_that_is_set_back_ends_nothing_before_it_began(tmp_path: Path, monkeypatch) -> None:
    """By a second within a short phase: such a run was set aside. One set back by a day shows the correct time."""
    # 1 July 2026.
    at = 1782864000.0
    monkeypatch.setattr("trainledger_recorder.journal.time", SimpleNamespace(time=lambda: at))
    with Recorder("r", tmp_path, imds=NOWHERE, environment={}) as run:
        with run.phase("init"):
            at -= 1.2
        at += 3600
    assert read_back(tmp_path).warnings == []
    assert rows(read_back(tmp_path), "run", "status") == [("completed",)]
    at -= 86400
    Recorder("later", tmp_path, imds=NOWHERE, environment={}).close()
    assert lines(tmp_path / "later")[0]["at"] == "2026-06-30T00:59:58.800Z"


def test_ranks_record_what_is_theirs(tmp_path: Path) -> None:
    """Two nodes of two ranks: one run, two stays, one epoch."""
    with metadata_service() as imds:
        for rank in range(4):
            environment = {"RANK": str(rank), "LOCAL_RANK": str(rank % 2)}
            with Recorder("r", tmp_path, imds=imds, environment=environment) as run:
                run.epoch_completed(1)
    events = [(line["event"], line.get("node_rank")) for line in lines(tmp_path)]
    assert events.count(("run_started", None)) == 1 and events.count(("epoch_completed", None)) == 1
    assert sorted(rank for event, rank in events if event == "resource_joined") == [0, 2]


def test_storage_that_nodes_have_is_one_stay_until_the_attempt_ends(tmp_path: Path) -> None:
    """Both nodes of the job mount the file system: it is recorded once per node, and is one stay of the run."""
    for rank in range(4):
        environment = {"RANK": str(rank), "LOCAL_RANK": str(rank % 2)}
        with Recorder("r", tmp_path, imds=NOWHERE, environment=environment) as run:
            run.attached("fs-0abc")
    assert [line["event"] for line in lines(tmp_path)].count("resource_joined") == 2
    assert rows(read_back(tmp_path), "resource", "resource_id", "left_at") == [("fs-0abc", None)]


def test_a_sagemaker_job_is_known_by_its_arn(tmp_path: Path) -> None:
    arn = "arn:aws:sagemaker:us-west-2:000033334444:training-job/tune-7"
    with Recorder("r", tmp_path, imds=NOWHERE, environment={"TRAINING_JOB_ARN": arn}):
        time.sleep(0.2)
    assert rows(read_back(tmp_path), "resource", "resource_id", "account_id", "region_id") == [
        (arn, "000033334444", "us-west-2")
    ]


def test_a_metadata_service_that_is_silent_costs_nothing_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A socket that takes the call and never answers: the hop limit's trap."""
    with socket.create_server(("127.0.0.1", 0)) as silent, caplog.at_level(logging.WARNING):
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with Recorder("r", tmp_path, imds=address, environment={}) as run:
            assert time.monotonic() - began < 0.5
            run.epoch_completed(1)
    assert [record.message.count("hop limit to 2") for record in caplog.records] == [1]
    assert rows(read_back(tmp_path), "epoch", "epoch_index") == [(1,)]
    assert rows(read_back(tmp_path), "resource", "resource_id") == []


def test_a_folder_that_cannot_be_written_does_not_stop_the_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with Recorder("r", tmp_path / "file", imds=NOWHERE, environment={}) as run:
        run.epoch_completed(1)
        run.heartbeat(step=float("nan"))  # type: ignore[arg-type]
    assert any("cannot be written" in record.message for record in caplog.records)


LOOP = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from trainledger_recorder import Recorder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Recorder("r", Path(sys.argv[1]), imds="http://127.0.0.1:9", environment={}) as run:
    print("training", flush=True)
    for step in range(1, 100):
        if step == 50:
            # No byte more than half a line from here on.
            size = next(Path(sys.argv[1]).rglob("*.jsonl")).stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
        if step == 60:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        run.epoch_completed(step)
print("trained", flush=True)
"""


def test_a_full_disk_costs_its_events_and_nothing_else(tmp_path: Path) -> None:
    """It is full from epoch 50 to 59 but for 20 bytes: the line that was cut is epoch 50's, nine found no room."""
    command = [sys.executable, "-c", LOOP, tmp_path, ROOT / "recorder"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["training", "trained"], done.stderr
    (file,) = tmp_path.rglob("*.jsonl")
    found = file.read_text().splitlines()
    (cut,) = (line for line in found if not line.endswith("}"))
    assert len(cut) == 20
    events = [json.loads(line) for line in found if line != cut]
    epochs = [event["epoch"] for event in events if event["event"] == "epoch_completed"]
    assert epochs == [*range(1, 50), *range(60, 100)]


def test_spot_notice_is_heard(tmp_path: Path) -> None:
    with metadata_service(interrupted=True) as imds, Recorder("r", tmp_path, imds=imds, environment={}) as run:
        assert run.is_interrupted()
    with metadata_service() as imds, Recorder("r", tmp_path, imds=imds, environment={}) as run:
        assert not run.is_interrupted()


def test_events_are_uploaded_and_what_a_kill_left_behind_too(tmp_path: Path, s3_endpoint: str, monkeypatch) -> None:
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket="acme-ml")
    left = tmp_path / "r" / "attempt-1" / "rank-0.jsonl"
    left.parent.mkdir(parents=True)
    left.write_text('{"event":"attempt_started","run_id":"r","attempt":1,"at":"2026-07-01T10:00:00Z"}\n')
    with Recorder("r", tmp_path, upload="s3://acme-ml/runs", imds=NOWHERE, environment={}) as run:
        run.epoch_completed(1)
    source = RunSource(name="jobs", location="s3://acme-ml/runs", endpoint_url=s3_endpoint)
    records = read_runs(source)
    assert rows(records, "attempt", "attempt_no") == [(1,), (2,)]
    assert rows(records, "epoch", "epoch_index") == [(1,)]


def test_an_attempt_on_a_new_disk_does_not_replace_the_one_before(
    tmp_path: Path, s3_endpoint: str, monkeypatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A pod that comes back on another machine: its folder is empty, what the first one did is in S3 alone."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="acme-disks")
    # As torchrun starts it each time.
    environment = {"RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0"}
    for epoch, disk in enumerate(("first", "second"), start=1):
        upload = "s3://acme-disks/runs"
        with Recorder("r", tmp_path / disk, upload=upload, imds=NOWHERE, environment=environment) as run:
            run.epoch_completed(epoch)
    records = read_runs(RunSource(name="jobs", location="s3://acme-disks/runs", endpoint_url=s3_endpoint))
    assert rows(records, "attempt", "attempt_no") == [(1,), (2,)]
    assert rows(records, "epoch", "epoch_index", "attempt_no") == [(1, 1), (2, 2)]
    assert not any("earlier attempts" in message for message in caplog.messages)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    Recorder("r", tmp_path / "third", upload="s3://acme-disks/runs", imds=NOWHERE, environment=environment)
    assert any("allow s3:ListBucket" in message for message in caplog.messages)


def test_each_run_id_has_a_folder_of_its_own(tmp_path: Path, s3_endpoint: str, monkeypatch) -> None:
    """Two jobs that train at once on machines of their own: the one replaced what the other had uploaded."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="acme-ids")
    run_ids = ["..", "a b", "a/b", "a_b", "long" * 100]
    at_once = [
        Recorder(run_id, tmp_path / str(disk), upload="s3://acme-ids/runs", imds=NOWHERE, environment={})
        for disk, run_id in enumerate(run_ids)
    ]
    for run in at_once:
        run.close()
    records = read_runs(RunSource(name="jobs", location="s3://acme-ids/runs", endpoint_url=s3_endpoint))
    assert rows(records, "run", "run_id") == [(run_id,) for run_id in run_ids]


def test_processes_of_unknown_rank_do_not_replace_each_other(tmp_path: Path, s3_endpoint: str, monkeypatch) -> None:
    """Two nodes of a launcher that sets no rank: the machine of one of them was missing. Later they are attempt 2."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="acme-ranks")
    for disks in ("ab", "cd"):
        nodes = []
        for disk in disks:
            job = {"TRAINING_JOB_ARN": f"arn:aws:sagemaker:us-west-2:000033334444:training-job/{disk}"}
            upload = "s3://acme-ranks/runs"
            nodes.append(Recorder("r", tmp_path / disk, upload=upload, imds=NOWHERE, environment=job))
        for node in nodes:
            node.close()
    records = read_runs(RunSource(name="jobs", location="s3://acme-ranks/runs", endpoint_url=s3_endpoint))
    found = rows(records, "resource", "attempt_no", "resource_id")
    assert [(number, name[-1]) for number, name in found] == [(1, "a"), (1, "b"), (2, "c"), (2, "d")]


def test_events_are_uploaded_at_the_exit_of_the_interpreter(tmp_path: Path, s3_endpoint: str, monkeypatch) -> None:
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="acme-exit")
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[2])\n"
        "from trainledger_recorder import Recorder\n"
        "run = Recorder('r', sys.argv[1], upload='s3://acme-exit/runs', imds='http://127.0.0.1:9', environment={})\n"
        "run.epoch_completed(1)\n"
        # The library that uploads is imported while the training runs.
        "while not hasattr(sys.modules.get('boto3.s3.transfer'), 'TransferConfig'): time.sleep(0.1)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path, ROOT / "recorder"], check=True, timeout=120)
    records = read_runs(RunSource(name="jobs", location="s3://acme-exit/runs", endpoint_url=s3_endpoint))
    assert rows(records, "run", "status") == [("unknown",)]


def test_an_upload_that_fails_is_reported_and_loses_nothing(tmp_path: Path, caplog, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with Recorder("r", tmp_path, upload="s3://acme-ml/runs", imds=NOWHERE, environment={}, patience_seconds=0.5) as run:
        run.epoch_completed(1)
    assert rows(read_back(tmp_path), "epoch", "epoch_index") == [(1,)]


def test_an_upload_without_boto3_is_reported_at_the_start(tmp_path: Path, caplog, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setattr("trainledger_recorder.journal.find_spec", lambda name: None)
    run = Recorder("r", tmp_path, upload="s3://acme-ml/runs", imds=NOWHERE, environment={})
    fix = "trainledger recorder: the upload needs boto3: pip install boto3."
    assert fix in caplog.messages
    run.epoch_completed(1)
    run.close()
    assert caplog.messages.count(fix) == 1
    assert not any("ModuleNotFoundError" in message for message in caplog.messages)
    assert rows(read_back(tmp_path), "epoch", "epoch_index") == [(1,)]


def test_an_event_costs_the_training_microseconds(tmp_path: Path) -> None:
    """Ten thousand events; 200 microseconds each would still be nothing compared with a training step."""
    with Recorder("r", tmp_path, imds=NOWHERE, environment={}) as run:
        began = time.process_time()
        for step in range(10_000):
            run.heartbeat(step=step)
        spent = time.process_time() - began
    assert spent / 10_000 < 200e-6
    assert len(lines(tmp_path)) >= 10_000


def test_callbacks_record_what_frameworks_report(tmp_path: Path) -> None:
    """Called as transformers 5.17 and Lightning 2.6 call them; `test_recorded_training.py` runs those themselves."""

    with Recorder("hf", tmp_path / "hf", imds=NOWHERE, environment={}) as run:
        callback = HuggingFaceCallback(run)
        for epoch in (0.9997, 1.5):
            state = SimpleNamespace(epoch=epoch, global_step=round(100 * epoch), num_input_tokens_seen=4096)
            callback.on_epoch_end(None, state, None)
        scores = {"eval_loss": 2.0, "eval_runtime": 3.0, "epoch": 1.0, "num_input_tokens_seen": 4096}
        callback.on_evaluate(None, state, None, metrics=scores)
        callback.on_save(SimpleNamespace(output_dir=str(tmp_path)), state, None)
    records = read_back(tmp_path / "hf")
    assert rows(records, "epoch", "epoch_index", "fraction") == [(1, None), (2, 0.5)]
    ((step, stalled),) = rows(records, "checkpoint", "step", "stall_seconds")
    assert step == 150 and 0 <= stalled < 60
    assert rows(records, "evaluation", "metric", "value") == [("eval_loss", 2.0)]

    saved = []
    with Recorder("pl", tmp_path / "pl", imds=NOWHERE, environment={}) as run:
        callback = LightningCallback(run)
        trainer = SimpleNamespace(
            current_epoch=0,
            global_step=25,
            num_training_batches=50,
            sanity_checking=False,
            callback_metrics={"val_loss": 1.5, "train_loss": 1.0},
            save_checkpoint=lambda filepath, weights_only=None: saved.append((filepath, weights_only)),
        )
        for _ in range(2):
            callback.on_fit_start(trainer, None)
        callback.on_train_batch_end(trainer, None, None, None, 24)
        callback.on_validation_end(trainer, None)
        callback.on_train_epoch_end(trainer, None)
        trainer.save_checkpoint("epoch=0-step=25.ckpt")
        trainer.save_checkpoint("last.ckpt", False)
        trainer.global_step = 26
        trainer.save_checkpoint("weights.ckpt", weights_only=True)
    records = read_back(tmp_path / "pl")
    assert [name for name, _ in saved] == ["epoch=0-step=25.ckpt", "last.ckpt", "weights.ckpt"]
    assert rows(records, "epoch", "epoch_index", "fraction") == [(1, 0.5)]
    assert rows(records, "evaluation", "metric") == [("val_loss",)]
    assert rows(records, "checkpoint", "step", "uri", "is_resumable") == [
        (25, "epoch=0-step=25.ckpt", True),
        (26, "weights.ckpt", False),
    ]


def test_it_is_a_wheel_of_its_own_that_needs_nothing(tmp_path: Path) -> None:
    subprocess.run(
        [Path(sys.executable).with_name("uv"), "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT / "recorder"],
        check=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from trainledger_recorder import Recorder\n"
        "with Recorder('r', sys.argv[2], imds='http://127.0.0.1:9', environment={}) as run: run.epoch_completed(1)\n"
    )
    # -I -S: no site-packages, so nothing but the standard library is there.
    subprocess.run([sys.executable, "-I", "-S", "-c", code, wheel, tmp_path / "runs"], check=True, timeout=60)
    assert rows(read_back(tmp_path / "runs"), "epoch", "epoch_index") == [(1,)]
