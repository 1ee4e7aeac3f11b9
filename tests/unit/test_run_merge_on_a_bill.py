"""One machine, two records of what ran on it: it is charged once, whichever record names it."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_time, write_export
from support.ledgers import ask, lazy_warehouse
from support.two_sources import events, wandb

from pipelines.models.build import Builder

STARTED = datetime(2026, 7, 1, 10)


def configured(root: Path, *more: str) -> Path:
    """A p5.48xlarge at 55.04 an hour, billed from 10:00 to 13:00, and the configuration of these sources of runs."""
    lines = instance_time("i-01", "p5.48xlarge", "55.04", STARTED, timedelta(hours=3))
    bill = write_export(root, {"2026-07": lines})
    config = root / "trainledger.toml"
    sources = "".join(f'[[runs]]\nname = "{n}"\nkind = "{k}"\nlocation = "{p}"\n' for n, k, p in map(str.split, more))
    config.write_text(
        f'[warehouse]\nlocation = "warehouse"\n[[billing]]\nname = "payer"\nlocation = "{bill}"\n{sources}'
    )
    return config


def costs(builder: Builder) -> dict[str, Decimal]:
    """Effective dollars by run, and by bucket where there is none."""
    by = "select coalesce(run_id, bucket) as whose, sum(effective_cost_usd) from fct_ledger group by 1"
    return dict(ask(builder, by).rows())


def test_a_run_declared_the_same_is_charged_once(tmp_path: Path) -> None:
    """It held the node for two of the three hours: 2 x 55.04 = 110.08, the third is idle. W&B claims 3.03 hours."""
    events(tmp_path / "e")
    wandb(tmp_path / "w", **{"trainledger.run_id": "r1"})
    builder = lazy_warehouse(configured(tmp_path, "jobs events e", "wandb wandb w"))
    assert costs(builder) == {"r1": Decimal("110.08"), "idle": Decimal("55.04")}


@pytest.mark.slow
def test_two_runs_of_one_name_do_not_claim_a_node_twice(tmp_path: Path) -> None:
    """Both claim 10 to 11 and 12 to 13, which are the nearer one's; the hour between is W&B's alone, 55.04."""
    events(tmp_path / "e")
    wandb(tmp_path / "w")
    builder = lazy_warehouse(configured(tmp_path, "jobs events e", "wandb wandb w"))
    assert costs(builder) == {"r1": Decimal("110.08"), "r1@wandb": Decimal("55.04")}


@pytest.mark.parametrize("is_whole_run_gone", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_save_rotated_away_is_still_known_to_the_next_build(tmp_path: Path, is_whole_run_gone: bool) -> None:
    for step in (1, 2):
        folder = tmp_path / "s" / "r1" / f"step-{step}"
        folder.mkdir(parents=True)
        for name in ("__0_0.distcp", ".metadata"):
            (folder / name).write_text("0123456789")
    events(tmp_path / "e")
    config = configured(tmp_path, "jobs events e", "saves checkpoints s")
    steps = "select step from stg_tracker__checkpoint where run_id = 'r1' order by step"
    assert [step for (step,) in ask(lazy_warehouse(config), steps).rows()] == [1, 2, 100]
    shutil.rmtree(tmp_path / "s" / "r1" / ("" if is_whole_run_gone else "step-1"))
    assert [step for (step,) in ask(lazy_warehouse(config), steps).rows()] == [1, 2, 100]
