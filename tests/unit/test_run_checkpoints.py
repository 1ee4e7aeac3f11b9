"""Folders of checkpoints: which saves are durable, by the marker of each framework, and since when (facts 1.9-1.12)."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import polars as pl
import pytest

from pipelines.base.errors import UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.checkpoints import Folder, judged
from pipelines.ingest.runs.records import RunRecords
from pipelines.ingest.runs.tracker import read_all, read_runs
from pipelines.warehouse.storage import Object
from pipelines.warehouse.storage_local import LocalStore

NOON = datetime.fromisoformat("2026-07-01T12:00:00+00:00")


def put(root: Path, key: str, minute: float, content: str = "0123456789") -> None:
    """A file of 10 bytes unless given, written so many minutes after noon."""
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    stamp = (NOON + timedelta(minutes=minute)).timestamp()
    os.utime(path, (stamp, stamp))


def dcp(root: Path, folder: str, at: float) -> None:
    """A whole save of torch distributed checkpoint."""
    put(root, f"{folder}/__0_0.distcp", at - 1)
    put(root, f"{folder}/.metadata", at)


def source(root: Path | str, **more: Any) -> RunSource:
    return RunSource.model_validate({"name": "saves", "kind": "checkpoints", "location": str(root), **more})


def minute(at: datetime) -> float:
    return (at - NOON.replace(tzinfo=None)).total_seconds() / 60


def saves(records: RunRecords) -> list[tuple]:
    """(run, step, durable in minutes after noon, bytes, whole) by step."""
    found = records.tables["tracker_checkpoint"].sort("run_id", "step", "checkpoint_id").rows(named=True)
    return [(r["run_id"], r["step"], minute(r["durable_at"]), r["bytes"], r["is_complete"]) for r in found]


def test_torch_dcp_is_whole_by_its_metadata(tmp_path: Path) -> None:
    """The second save was killed before `.metadata`; the first is dated by it, 3 files of 10 bytes."""
    for name, at in (("__0_0.distcp", 1), ("__1_0.distcp", 2), (".metadata", 3)):
        put(tmp_path, f"llama/step-100/{name}", at)
    put(tmp_path, "llama/step-200/__0_0.distcp", 10)
    records = read_runs(source(tmp_path))
    assert saves(records) == [("llama", 100, 3, 30, True), ("llama", 200, 10, 10, False)]
    assert any("step-200 has no `.metadata`" in warning for warning in records.warnings)


def test_a_shard_that_came_after_the_marker_moves_the_time(tmp_path: Path) -> None:
    put(tmp_path, "llama/step-100/.metadata", 3)
    put(tmp_path, "llama/step-100/__0_0.distcp", 5)
    assert saves(read_runs(source(tmp_path))) == [("llama", 100, 5, 20, True)]


def test_a_torchtitan_export_is_whole_and_protects_nothing(tmp_path: Path) -> None:
    put(tmp_path, "titan/step-7/model-00001.safetensors", 1)
    put(tmp_path, "titan/step-7/model.safetensors.index.json", 2)
    frame = read_runs(source(tmp_path)).tables["tracker_checkpoint"]
    assert frame.select("is_complete", "is_resumable").rows() == [(True, False)]


def nxd(root: Path, tag: str, begun: float, shard: float, done: float | None) -> None:
    put(root, f"nxd/{tag}/checkpoint", begun, "")
    put(root, f"nxd/{tag}/model/shard_0.pt", shard)
    if done is not None:
        put(root, f"nxd/{tag}/done", done, "")


def test_nxd_done_in_its_own_time_dates_the_save(tmp_path: Path) -> None:
    nxd(tmp_path, "step_100", 10, 11, 12)
    nxd(tmp_path, "step_200", 60, 61, None)
    records = read_runs(source(tmp_path))
    assert saves(records) == [("nxd", 100, 12, 10, True), ("nxd", 200, 61, 10, False)]
    assert records.tables["tracker_checkpoint"]["save_started_at"].map_elements(minute, pl.Float64).to_list() == [
        10,
        60,
    ]


def test_nxd_done_of_an_asynchronous_save_overstates_when_it_was_durable(tmp_path: Path) -> None:
    """`done` of step 100 came at minute 60, as the save of step 200 began; its last shard was there at minute 11."""
    nxd(tmp_path, "step_100", 10, 11, 60)
    nxd(tmp_path, "step_200", 60, 61, None)
    records = read_runs(source(tmp_path))
    assert saves(records)[0] == ("nxd", 100, 11, 10, True)
    assert any("`done` came 2940 s after its last shard" in warning for warning in records.warnings)


def test_nemo_marks_what_is_unfinished(tmp_path: Path) -> None:
    name = "gpt--val_loss=2.31-step={}-consumed_samples=128000.0"
    put(tmp_path, f"nemo/{name.format(1000)}.ckpt", 5)
    put(tmp_path, f"nemo/{name.format(2000)}.ckpt", 9)
    put(tmp_path, f"nemo/{name.format(2000)}.ckpt-unfinished", 8, "")
    put(tmp_path, f"nemo/{name.format(3000)}/weights/w.pt", 12)
    put(tmp_path, f"nemo/{name.format(3000)}-unfinished", 11, "")
    assert [(step, at, whole) for _, step, at, _, whole in saves(read_runs(source(tmp_path)))] == [
        (1000, 5, True),
        (2000, 9, False),
        (3000, 12, False),
    ]


def test_hf_is_whole_by_its_trainer_state(tmp_path: Path) -> None:
    state = json.dumps({"global_step": 500, "max_steps": 1000})
    put(tmp_path, "out/checkpoint-500/model.safetensors", 1)
    put(tmp_path, "out/checkpoint-500/optimizer.pt", 2)
    put(tmp_path, "out/checkpoint-500/trainer_state.json", 3, state)
    put(tmp_path, "out/checkpoint-1000/model.safetensors", 9)
    assert saves(read_runs(source(tmp_path))) == [
        ("out", 500, 3, 20 + len(state), True),
        ("out", 1000, 9, 10, False),
    ]


def test_dummies_of_a_neuron_precompile_are_not_counted(tmp_path: Path) -> None:
    """neuron_parallel_compile runs 10 trial steps and saves; the real run plans 1000."""
    for step, planned in ((10, 10), (500, 1000)):
        state = json.dumps({"global_step": step, "max_steps": planned})
        put(tmp_path, f"out/checkpoint-{step}/model.safetensors", step)
        put(tmp_path, f"out/checkpoint-{step}/trainer_state.json", step, state)
    records = read_runs(source(tmp_path))
    assert [step for _, step, *_ in saves(records)] == [500]
    assert any("checkpoint-10 is a dummy of a Neuron precompile" in warning for warning in records.warnings)


@pytest.mark.parametrize(
    ("tracker", "content", "folders"),
    [
        ("latest_checkpointed_iteration.txt", "2000", ("iter_0001000", "iter_0002000", "iter_0003000")),
        ("latest", "global_step2000", ("global_step1000", "global_step2000", "global_step3000")),
    ],
)
def test_a_tracker_next_to_the_saves_names_the_newest_whole_one(
    tmp_path: Path, tracker: str, content: str, folders: tuple[str, ...]
) -> None:
    """Megatron and DeepSpeed: what is older was whole too, dated by its shards; what is newer is not."""
    for number, folder in enumerate(folders, start=1):
        put(tmp_path, f"m/{folder}/mp_rank_00/model.pt", number * 10)
    put(tmp_path, f"m/{tracker}", 22, content)
    assert [(step, at, whole) for _, step, at, _, whole in saves(read_runs(source(tmp_path)))] == [
        (1000, 10, True),
        (2000, 22, True),
        (3000, 30, False),
    ]


def test_whose_saves_they_are_is_known_by_a_pattern(tmp_path: Path) -> None:
    dcp(tmp_path, "team/llama8b-42/ckpt/step-1", 1)
    dcp(tmp_path, "team/llama8b-43/other/step-1", 1)
    records = read_runs(source(tmp_path, run_id="team/{run_id}/ckpt"))
    assert [run for run, *_ in saves(records)] == ["llama8b-42"]
    assert any("llama8b-43/other/step-1 does not match run_id" in warning for warning in records.warnings)
    assert {run for run, *_ in saves(read_runs(source(tmp_path, run_id="one")))} == {"one"}
    assert [run for run, *_ in saves(read_runs(source(tmp_path / "team/llama8b-42/ckpt")))] == ["saves"]
    with pytest.raises(UsageError, match="twice"):
        read_runs(source(tmp_path, run_id="{run_id}/{run_id}"))


def test_an_empty_place_is_reported(tmp_path: Path) -> None:
    records = read_runs(source(tmp_path))
    assert [
        warning.endswith("holds no checkpoint: no run is recorded there yet; check `location` if training has run.")
        for warning in records.warnings
    ] == [True]


def test_a_save_rotated_away_keeps_its_record(tmp_path: Path) -> None:
    """`keep_latest_k = 1`: step 100 was seen and is gone when step 200 is."""
    dcp(tmp_path, "llama/step-100", 3)
    before = read_all([source(tmp_path)]).tables
    shutil.rmtree(tmp_path / "llama/step-100")
    dcp(tmp_path, "llama/step-200", 9)
    after = read_all([source(tmp_path)], before)
    assert [(step, at) for _, step, at, *_ in saves(after)] == [(100, 3), (200, 9)]
    shutil.rmtree(tmp_path / "llama/step-200")
    gone = read_all([source(tmp_path)], after.tables)
    assert saves(gone) == saves(after)
    assert gone.tables["tracker_run"]["run_id"].to_list() == ["llama"]


def test_saves_in_s3_are_read_by_the_same_rules(s3_endpoint: str) -> None:
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket="ckpt")
    for key in ("llama/step-100/__0_0.distcp", "llama/step-100/.metadata", "llama/step-200/__0_0.distcp"):
        client.put_object(Bucket="ckpt", Key=f"runs/{key}", Body=b"0123456789")
    records = read_runs(source("s3://ckpt/runs/", endpoint_url=s3_endpoint, region="us-east-1"))
    frame = records.tables["tracker_checkpoint"].sort("step")
    assert frame.select("run_id", "step", "bytes", "is_complete", "uri").rows() == [
        ("llama", 100, 20, True, "s3://ckpt/runs/llama/step-100"),
        ("llama", 200, 10, False, "s3://ckpt/runs/llama/step-200"),
    ]


def test_a_multipart_shard_without_a_marker_is_reported_as_too_early(s3_endpoint: str) -> None:
    """S3 dates an object sent in parts by when it was begun; its ETag ends in the number of parts."""
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket="parts")
    key = "nemo/gpt--step=1000-consumed_samples=8.0.ckpt"
    upload = client.create_multipart_upload(Bucket="parts", Key=key)["UploadId"]
    part = client.upload_part(Bucket="parts", Key=key, UploadId=upload, PartNumber=1, Body=b"x" * 6 * 1024 * 1024)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    client.complete_multipart_upload(Bucket="parts", Key=key, UploadId=upload, MultipartUpload=parts)
    records = read_runs(source("s3://parts", endpoint_url=s3_endpoint, region="us-east-1"))
    assert records.tables["tracker_checkpoint"].select("step", "is_complete").rows() == [(1000, True)]
    assert any("its time is when the upload began" in warning for warning in records.warnings)


def test_a_multipart_shard_is_dated_by_the_marker_put_after_it(tmp_path: Path) -> None:
    """The upload of the shard began at minute 0 and took until 9; the marker, one PUT, has 10."""
    shard = Object("step-1/__0_0.distcp", 9 << 30, '"0123456789abcdef0123456789abcdef-900"', NOON)
    mark = Object("step-1/.metadata", 10, '"0123456789abcdef0123456789abcdef"', NOON + timedelta(minutes=10))
    verdict = judged(Folder("step-1", 1, (shard, mark), {}), LocalStore(str(tmp_path)).read)
    assert (verdict.is_complete, verdict.marked_at) == (True, NOON + timedelta(minutes=10))
