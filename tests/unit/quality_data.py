"""A small table for the tests of quality: its columns, good and bad rows, and how to stage them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.contract import Contract, load_contract
from pipelines.models.gate import ExpectationsGate
from pipelines.models.validate import CheckResult, validate

COLUMNS = """
run_id: {type: VARCHAR, meaning: Name of the run.}
bucket: {type: VARCHAR, meaning: Where the money went.}
started_date: {type: DATE, unit: UTC, meaning: Day of the start.}
started_at: {type: TIMESTAMP, unit: UTC, meaning: Time of the start.}
epoch_count: {type: BIGINT, unit: epochs, meaning: Completed epochs.}
effective_cost_usd: {type: "DECIMAL(38,10)", unit: usd, meaning: What it cost.}
saving_ratio: {type: DOUBLE, unit: ratio, meaning: Saved share.}
is_billed: {type: BOOLEAN, meaning: Whether a bill line is known.}
"""
NAMES = "run_id, bucket, started_date, started_at, epoch_count, effective_cost_usd, saving_ratio, is_billed"
GOOD = "('a', 'run', '2026-07-01', '2026-07-01 10:00:00', 2, 10.5, 0.25, true)"
# Each row is wrong in one way; its run_id names which.
BAD = {
    "no_bucket": "('no_bucket', null, '2026-07-01', '2026-07-01 10:00:00', 2, 10.5, 0.25, true)",
    "it's odd": "('it''s odd', 'it''s', '2026-07-01', '2026-07-01 10:00:00', 2, 10.5, 0.25, true)",
    "refund": "('refund', 'run', '2026-07-01', '2026-07-01 10:00:00', 2, -0.0000000001, 0.25, true)",
    "early": "('early', 'run', '1999-12-31', '1999-12-31 23:00:00', 2, 10.5, 0.25, true)",
    "too_good": "('too_good', 'run', '2026-07-01', '2026-07-01 10:00:00', 2, 10.5, 1.5, true)",
    "unbilled": "('unbilled', 'run', '2026-07-01', '2026-07-01 10:00:00', 2, 10.5, 0.25, false)",
}


def stage(folder: Path, *rows: str, name: str = "staged", casts: str = "") -> Path:
    """A Parquet file with the columns above, or with `casts` in their place."""
    path = folder / f"{name}.parquet"
    types = casts or (
        "run_id, bucket::varchar as bucket, started_date::date as started_date, "
        "started_at::timestamp as started_at, "
        "epoch_count::bigint as epoch_count, effective_cost_usd::decimal(38, 10) as effective_cost_usd, "
        "saving_ratio::double as saving_ratio, is_billed"
    )
    with DuckDBEngine() as engine:
        engine.write(f"select {types} from (values {', '.join(rows)}) as given({NAMES})", path)
    return path


def contract(folder: Path, checks: str = "", key: str = "[run_id]") -> Contract:
    (folder / "marts").mkdir(exist_ok=True)
    (folder / "columns").mkdir(exist_ok=True)
    (folder / "columns" / "run.yml").write_text(COLUMNS, encoding="utf-8")
    text = f"grain: one row per run\nkey: {key}\ncolumns: [{NAMES}]\n{checks}"
    (folder / "marts" / "mart_run.yml").write_text(text, encoding="utf-8")
    return load_contract("marts/mart_run", folder)


def checked(
    files: Sequence[Path], promised: Contract, sample: int = 5, extra: Mapping[str, Sequence[Path]] | None = None
) -> list[CheckResult]:
    """How the checks of `mart_run` come out over the rows of these files; Great Expectations has to agree."""
    with DuckDBEngine() as engine:
        for name, others in {**(extra or {}), "mart_run": files}.items():
            engine.view(name, others)
        return validate(engine, "mart_run", promised, sample, gate=ExpectationsGate(engine))[0]


def failures(results: list[CheckResult]) -> dict[str, CheckResult]:
    return {result.check: result for result in results if not result.passed}
