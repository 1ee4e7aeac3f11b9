"""The contract of the comparisons: what a mistake of our own would have to get past before it is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.validate import validate

GPU, TRAINIUM = "p5.48xlarge", "trn1.32xlarge"
BASE, HALF = (10, 11, 12.1), (5, 5.5, 6.05)
FORGED = {
    "saving greater than spend": ({"saving_ratio": 1.2}, "saving_is_not_less_than_what_was_spent"),
    "cost below nothing": ({"candidate_unit_cost_usd": -1.0}, "saving_is_not_less_than_what_was_spent"),
    "too few runs": ({"baseline_run_count": 2}, "verdict_rests_on_too_few_runs_or_no_interval"),
    "no interval": ({"saving_low_ratio": None}, "verdict_rests_on_too_few_runs_or_no_interval"),
    "quality missed": ({"quality_status": "missed"}, "verdict_rests_on_too_few_runs_or_no_interval"),
    "verdict against its interval": ({"saving_low_ratio": -0.1}, "verdict_that_contradicts_its_interval"),
    "costs of another basis": ({"candidate_unit_cost_usd": 2.0}, "unit_cost_is_not_of_its_runs"),
    "it is not registered": ({"registration": None}, "verdict_is_registered_or_not"),
    "open month": (
        {"workload_id": "open", "verdict": "supported", "registration": None},
        "verdict_of_a_month_that_is_not_closed",
    ),
}
SOUND = {
    "workload_id": "closed",
    "baseline_family": "gpu",
    "baseline_instance_type": GPU,
    "candidate_family": "trainium",
    "candidate_instance_type": TRAINIUM,
    "cost_basis": "effective",
    "billing_currency": "USD",
    "baseline_run_count": 3,
    "candidate_run_count": 3,
    "excluded_run_count": 0,
    "unit_measure": "cost_per_epoch",
    "baseline_unit_cost_usd": 11.0,
    "candidate_unit_cost_usd": 5.5,
    "saving_ratio": 0.5,
    "saving_low_ratio": 0.37,
    "saving_high_ratio": 0.6,
    "quality_status": "met",
    "verdict": "proven",
    "verdict_reason": "as forged",
    "registration": "july",
    "price_date": date(2026, 7, 14),
}


def failing(folder: Path, row: Mapping[str, Any]) -> set[str]:
    contract = load_contract("marts/mart_silicon_comparison")
    files = {}
    # One run is a row of both.
    for table, rows in {"mart_silicon_comparison": [row], "fct_run_cost": runs(), "dim_run": runs()}.items():
        files[table] = folder / f"{table}.parquet"
        typed(load_catalog()[table].key, rows).write_parquet(files[table])
    files["stg_proof__registration"] = folder / "stg_proof__registration.parquet"
    typed("staging/stg_proof__registration", []).write_parquet(files["stg_proof__registration"])
    with DuckDBEngine() as engine:
        for table, file in files.items():
            engine.view(table, [file])
        checks, _ = validate(engine, "mart_silicon_comparison", contract)
    return {check.check for check in checks if not check.passed and check.severity == "error"}


def runs() -> list[dict[str, Any]]:
    costs = {GPU: BASE, TRAINIUM: HALF}
    return [
        {
            "run_id": f"{workload} {kind} {number}",
            "workload_id": workload,
            "billing_currency": "USD",
            "instance_type": kind,
            "status": "completed",
            "purpose": "train",
            "epoch_unit": "dataset_pass",
            "epoch_completed_count": 1,
            "effective_cost_usd": cost,
            "effective_compile_part_usd": 0,
            "open_billing_month": date(2026, 7, 1) if workload == "open" else None,
        }
        for workload in ("closed", "open")
        for kind, of_side in costs.items()
        for number, cost in enumerate(of_side)
    ]


TYPES = {"VARCHAR": pl.String, "BIGINT": pl.Int64, "DOUBLE": pl.Float64, "BOOLEAN": pl.Boolean, "DATE": pl.Date}


def typed(table: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    columns = {column.name: column.type for column in load_contract(table).columns}
    loose = {
        name: TYPES.get(type_, pl.Datetime if type_ == "TIMESTAMP" else pl.Float64) for name, type_ in columns.items()
    }
    frame = pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], schema=loose)
    exact = {name: type_[8:-1].split(",") for name, type_ in columns.items() if type_.startswith("DECIMAL")}
    return frame.with_columns(pl.col(name).cast(pl.Decimal(int(w), int(s))) for name, (w, s) in exact.items())


def test_a_sound_row_passes_its_contract(tmp_path: Path) -> None:
    assert failing(tmp_path, SOUND) == set()


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_row_is_not_published(tmp_path: Path, forged: str) -> None:
    change, check = FORGED[forged]
    assert check in failing(tmp_path, SOUND | change)
