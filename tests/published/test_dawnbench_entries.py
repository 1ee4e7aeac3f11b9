"""DAWNBench entries on EC2: hours and accuracy by epoch, read by the pipeline, come to the leaderboard's dollars."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.bills import instance_time, moment, one_attempt, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.build import Builder

STARTED = datetime(2026, 7, 14)


@dataclass(frozen=True)
class Entry:
    """An entry, its machines, the accuracy that counts and the whole run's USD as the data's README has it."""

    name: str
    instance_type: str
    machines: int
    column: str
    target: float
    whole_run_usd: float


# Targets of the benchmark: ImageNet 93 % top-5, CIFAR10 94 % top-1.
ENTRIES = (
    Entry("ImageNet_fastai_resnet50_p3_16_machine_pytorch", "p3.16xlarge", 16, "top5Accuracy", 93, 118.07),
    Entry("ImageNet_fastai_resnet50_p3_4_machine_pytorch", "p3.16xlarge", 4, "top5Accuracy", 93, 51.86),
    Entry("CIFAR10_diux_cifar_p3", "p3.2xlarge", 1, "top1Accuracy", 94, 15.13),
    Entry("CIFAR10_davidcpage_resnet9_1v100-ec2_pytorch", "p3.2xlarge", 1, "top1Accuracy", 94, 0.06),
    Entry("CIFAR10_dawn_resnet164_b_1k80-ec2_pytorch", "p2.xlarge", 1, "top1Accuracy", 94, 11.02),
)


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    found = shared_data / "training" / "dawnbench"
    if not found.is_dir():
        pytest.skip(f"DAWNBench entries {found} are absent")
    return found


@pytest.fixture(scope="module")
def built(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    lines, events = [], []
    for entry in ENTRIES:
        rows, rate = read(folder, entry)
        lasts = timedelta(milliseconds=round(float(rows[-1]["hours"]) * 3_600_000))
        nodes = [f"i-{entry.name}-{number}" for number in range(entry.machines)]
        for node in nodes:
            lines += instance_time(node, entry.instance_type, str(rate / entry.machines), STARTED, lasts)
        inside: list[dict] = []
        for row in rows:
            at = moment(STARTED + timedelta(milliseconds=round(float(row["hours"]) * 3_600_000)))
            epoch = int(row["epoch"])
            inside.append({"event": "epoch_completed", "epoch": epoch, "at": at})
            value = float(row[entry.column])
            inside.append({"event": "evaluation", "metric": entry.column, "value": value, "step": epoch, "at": at})
        target = {"target_metric": entry.column, "target_value": entry.target, "target_direction": "max"}
        events += one_attempt(entry.name, nodes, entry.instance_type, STARTED, lasts, inside, **target)
    root = tmp_path_factory.mktemp("dawnbench")
    export = write_export(root, {"2026-07": lines})
    return lazy_warehouse(write_config(root, billing=export, runs=write_events(root / "runs", events)))


def read(folder: Path, entry: Entry) -> tuple[list[dict[str, str]], float]:
    """An entry's rows, by their headers (column order differs between entries), and USD an hour of all its machines."""
    with (folder / f"{entry.name}.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return rows, json.loads((folder / f"{entry.name}.json").read_text())["costPerHour"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_whole_run_and_cost_to_target(folder: Path, built: Builder, entry: Entry) -> None:
    rows, rate = read(folder, entry)
    first = next(float(row["hours"]) for row in rows if float(row[entry.column]) >= entry.target)
    run = ask(
        built,
        "select effective_cost_usd, cost_to_target_usd, epoch_completed_count from mart_run_cost "
        f"where run_id = '{entry.name}'",
    ).row(0, named=True)
    assert float(run["effective_cost_usd"]) == pytest.approx(entry.whole_run_usd, abs=0.005)
    # A millisecond of every machine is all that recording times in milliseconds can lose.
    assert float(run["cost_to_target_usd"]) == pytest.approx(first * rate, abs=rate / 3_600_000)
    assert run["epoch_completed_count"] == len(rows)
