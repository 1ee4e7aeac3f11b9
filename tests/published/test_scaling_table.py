"""S2: what training Stable Diffusion 2 base cost on 8 to 128 A100 at $2 a GPU-hour, from bills of those machines."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from support.bills import instance_time, one_attempt, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.build import Builder

# mosaicml/diffusion README: images of the two phases; GPUs, images a second in each, days and USD as printed.
IMAGES = (1_126_400_000, 1_740_800_000)
ROWS = (
    (8, (1100, 290), 81.33, 31_230),
    (16, (2180, 585), 40.42, 31_043),
    (32, (4080, 1195), 20.06, 30_805),
    (64, (8530, 2340), 10.14, 31_146),
    (128, (11600, 4590), 5.51, 33_874),
)
# Precomputing the latents took 3,784 A100-hours, reported as $7,600.
LATENTS_HOURS, LATENTS_GPUS = 3784, 8
STARTED = datetime(2026, 5, 1)
MACHINE_GPUS, MACHINE_RATE = 8, "16"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    months: dict[str, list] = {}
    events = []
    cases = [(gpus, seconds(speeds)) for gpus, speeds, _, _ in ROWS]
    for name, gpus, lasts in (
        *((f"gpus-{gpus}", gpus, lasts) for gpus, lasts in cases),
        ("latents", LATENTS_GPUS, Decimal(LATENTS_HOURS * 3600) / LATENTS_GPUS),
    ):
        took = timedelta(milliseconds=round(lasts * 1000))
        nodes = [f"i-{name}-{number}" for number in range(gpus // MACHINE_GPUS)]
        for node in nodes:
            for line in instance_time(node, "p4d.24xlarge", MACHINE_RATE, STARTED, took):
                months.setdefault(line["line_item_usage_start_date"][:7], []).append(line)
        events += one_attempt(name, nodes, "p4d.24xlarge", STARTED, took, model="sd2-base", purpose="pretrain")
    root = tmp_path_factory.mktemp("scaling")
    export = write_export(root, months)
    return lazy_warehouse(write_config(root, billing=export, runs=write_events(root / "runs", events)))


def seconds(speeds: tuple[int, int]) -> Decimal:
    return sum((Decimal(images) / speed for images, speed in zip(IMAGES, speeds, strict=True)), Decimal(0))


def cost(built: Builder, run_id: str) -> float:
    return float(ask(built, f"select effective_cost_usd from mart_run_cost where run_id = '{run_id}'").item())


@pytest.mark.parametrize(("gpus", "speeds", "days", "usd"), ROWS)
def test_days_and_dollars_are_as_printed(
    built: Builder, gpus: int, speeds: tuple[int, int], days: float, usd: int
) -> None:
    assert float(seconds(speeds)) / 86_400 == pytest.approx(days, abs=0.01)
    # Printed in whole dollars, cut off.
    assert cost(built, f"gpus-{gpus}") == pytest.approx(usd, abs=1)


def test_sixteen_times_the_machines_cost_an_eighth_more(built: Builder) -> None:
    assert cost(built, "gpus-128") / cost(built, "gpus-8") == pytest.approx(1.085, abs=0.0005)


def test_latents(built: Builder) -> None:
    assert cost(built, "latents") == pytest.approx(7_568, abs=0.005)
