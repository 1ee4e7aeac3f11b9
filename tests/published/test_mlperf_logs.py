"""Real MLPerf logs of Llama 2 70B LoRA, priced as if AWS had billed the machines: set-up is paid for and not scored."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copy

import pytest
from support.bills import instance_time, write_export
from support.commands import run_command
from support.ledgers import REPRICE_TABLES, ask_published, publish_tables

from pipelines.models.build import Builder

# p5.48xlarge on demand, July 2026; both logs are of one machine with 8 H100.
RATE = 55.04
LOGS = (
    "v4.0_NVIDIA_eos_ngc24.04_nemo_llama2_70b_lora_result_0",
    "v4.0_Oracle_1xBM.GPU.H100.8_llama2_70b_lora_result_1",
)
# Official result of v4.0 on 8 x H100: the olympic mean of ten runs, in minutes.
OFFICIAL_MINUTES = 28.07


@dataclass(frozen=True)
class Clock:
    """A log's times in seconds, read with nothing of ours."""

    first: float
    init_start: float
    init_stop: float
    run_start: float
    run_stop: float


def clock(path: Path) -> Clock:
    entries = [json.loads(line) for line in re.findall(r":::MLLOG (\{.*\})", path.read_text())]

    def at(key: str) -> float:
        return next(entry["time_ms"] for entry in entries if entry["key"] == key) / 1000

    first = min(entry["time_ms"] for entry in entries) / 1000
    return Clock(first, at("init_start"), at("init_stop"), at("run_start"), at("run_stop"))


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    found = shared_data / "training" / "mlperf"
    if not found.is_dir():
        pytest.skip(f"MLPerf logs {found} are absent")
    return found


@pytest.fixture(scope="module")
def built(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    root = tmp_path_factory.mktemp("mlperf")
    (root / "logs").mkdir()
    months: dict[str, list] = {}
    for name in LOGS:
        copy(folder / f"{name}.txt", root / "logs")
        times = clock(folder / f"{name}.txt")
        started = datetime.fromtimestamp(times.first, UTC).replace(tzinfo=None)
        lasts = timedelta(milliseconds=round((times.run_stop - times.first) * 1000))
        # A log names no machine: a tag of the bill names its owner.
        tags = json.dumps({"user_run_id": name})
        for line in instance_time(f"i-{name}", "p5.48xlarge", str(RATE), started, lasts, resource_tags=tags):
            months.setdefault(line["line_item_usage_start_date"][:7], []).append(line)
    export = write_export(root, months)
    config = root / "trainledger.toml"
    config.write_text(
        f'[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "payer"\nlocation = "{export}"\n\n'
        f'[[runs]]\nname = "logs"\nkind = "mllog"\nlocation = "{root / "logs"}"\n\n[tags]\nrun_id = ["run_id"]\n'
    )
    return publish_tables(config, [*REPRICE_TABLES, "mart_cost_decomposition", "detail_run_phase_cost"])


@pytest.mark.parametrize("name", LOGS)
def test_what_is_scored_and_what_is_paid(folder: Path, built: Builder, name: str) -> None:
    times = clock(folder / f"{name}.txt")
    whole, init = ask_published(
        built,
        "select cast(run.effective_cost_usd as double), cast(phase.effective_cost_usd as double) "
        "from mart_run_cost as run join detail_run_phase_cost as phase on phase.run_id = run.run_id "
        f"where run.run_id = '{name}' and phase.phase = 'init'",
    ).row(0)
    assert whole == pytest.approx((times.run_stop - times.first) * RATE / 3600, abs=0.001)
    assert init == pytest.approx((times.run_start - times.first) * RATE / 3600, rel=0.02)
    # The set-up of a run of half an hour takes about a minute (facts 1.11: 69 s of init per 27 min).
    assert 55 < times.run_start - times.first < 75
    # One run of ten, so near the official mean.
    assert (whole - init) * 60 / RATE == pytest.approx(OFFICIAL_MINUTES, rel=0.05)


def test_no_trainium_entry_no_verdict(built: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    """No one submitted Trainium to Training v4.0 (facts training-runs 6): GPU alone is compared with nothing."""
    claimed = "select count(*) from mart_silicon_comparison where verdict <> 'not comparable'"
    assert ask_published(built, claimed).item() == 0
    assert ask_published(built, "select count(*) from mart_cost_decomposition").item() == 0
    (workload,) = ask_published(built, "select distinct workload_id from mart_run_cost")["workload_id"]
    config = Path(built.warehouse.settings.warehouse.location).parent / "trainledger.toml"
    result = run_command(capsys, "reprice", workload, "--at", "2026-08-01", "--config", str(config))
    assert result.code == 1
    assert f"{workload} is not compared: it has 2 completed runs on GPU and 0 on Trainium" in result.error
