"""PaLM's published utilization, by the expression that detail_run_efficiency uses (facts training-runs 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.expressions import expand_calls

# 540.35e9 parameters, 118 layers, 48 heads of 256, sequences of 2048; TPU v4, 275 TFLOP/s each.
PALM = "training_flops_per_token(540.35e9, 118, 48, 256, 2048)"
CHIP = 275e12


def flops_per_token() -> float:
    with DuckDBEngine() as engine:
        return engine.query(expand_calls(f"select {PALM} as flops", Path("palm.sql"))).item()


def test_utilization_of_palm_in_training() -> None:
    # 238.3e3 tokens a second on 6144 chips: 46.2 %.
    assert 238.3e3 * flops_per_token() / (6144 * CHIP) == pytest.approx(0.462, abs=0.0005)


def test_utilization_of_palm_over_all_it_was_billed() -> None:
    # 2527.2 ZFLOP in 1200 h of 6144 and 336 h of 3072 chips: 30.4 %.
    chip_seconds = (1200 * 6144 + 336 * 3072) * 3600
    assert 2527.2e21 / (chip_seconds * CHIP) == pytest.approx(0.304, abs=0.0005)
    # The attention over 2048 tokens is what separates 6ND of 780e9 tokens from it by little.
    assert 780e9 * flops_per_token() == pytest.approx(2527.2e21, rel=0.02)
