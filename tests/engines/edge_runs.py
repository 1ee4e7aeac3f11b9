"""The run log of the made-up month: runs that ended well, broke off, overlap, or are named by a tag alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from edge_bill import BUCKET, FIRST_HOUR, MACHINES

from pipelines.ingest.runs.records import SCHEMAS


def write_runs(root: Path) -> dict[str, Path]:
    """The tracker's tables of a few runs, whole ones and ones that broke off, one Parquet file each."""
    root.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, frame in _tracker().items():
        files[f"tracker_{name}"] = root / f"tracker_{name}.parquet"
        frame.write_parquet(files[f"tracker_{name}"])
    return files


def at(minutes: float) -> datetime:
    """Minutes after the first hour; a third of a minute is twenty seconds, and 37 milliseconds are on top."""
    return FIRST_HOUR + timedelta(minutes=minutes, milliseconds=37)


# run, target value, status, ended at; a target is printed into the workload's name.
RUNS = (
    ("run-a", 2.05, "completed", 300.0), ("run-b", 2.05, "completed", 310.0), ("run-c", 0.0005, None, None),
    ("run-d", 1e-05, "failed", 200.0), ("run-e", 12345678.5, "completed", 400.0), ("run-tagged", None, None, None),
    ("run-h", 1e22, "killed", 90.0), ("run-f", 2.05, "completed", 330.0),
)  # fmt: skip
# run, attempt, from, to, end reason.
ATTEMPTS = (
    ("run-a", 1, 5.0, 120.0, "spot_interruption"), ("run-a", 2, 125.0, 300.0, "completed"),
    ("run-b", 1, 10.0, 310.0, "completed"), ("run-c", 1, 3.3, None, None), ("run-c", 2, 61.0, None, None),
    ("run-d", 1, 30.0, 200.0, "oom"), ("run-e", 1, 100.0, 400.0, "completed"), ("run-f", 1, 10.0, 330.0, "completed"),
    ("run-tagged", 1, 240.0, 470.0, None),
)  # fmt: skip
# run, attempt, resource, from, to, accelerators.
STAYS = (
    ("run-a", 1, "i-0a", 4.0, 119.6, None), ("run-a", 2, "i-0a", 124.5, 301.0, None),
    ("run-b", 1, "i-0c", 9.0, 310.2, 16), ("run-c", 1, "i-0b", 2.0, None, 3), ("run-c", 2, "i-0b", 60.0, None, 3),
    ("run-d", 1, "i-0b", 31.0, 199.0, 7), ("run-e", 1, "i-0e", 101.0, 401.0, 8), ("run-e", 1, "i-0a", 300.5, 333.3, 8),
    ("run-h", 1, "i-0d", 0.0, 90.0, None), ("run-d", 1, "vol-1", 31.0, 199.0, None),
    ("run-e", 1, "vol-1", 0.0, None, None), ("run-f", 1, "i-0b", 11.0, 329.0, 1),
)  # fmt: skip
# run, type, from, to: who names no machine. One fits, two describe the same, and nothing is billed for the last.
DESCRIBED = (
    ("run-tagged", "p4d.24xlarge", 345.0, 358.0), ("run-d", "p4d.24xlarge", 380.0, 418.0),
    ("run-h", "p4d.24xlarge", 381.0, 417.0), ("run-c", "trn2.48xlarge", 70.0, 90.0),
)  # fmt: skip
# Epoch unit and size, tokens' unit and count, parameters in all and active, layers, heads, their width.
UNITS = {
    "run-a": (None, None, None, None, 8.03e9, None, 32, 32, 128),
    "run-b": ("token_block", 1.1e8, "device", 16, 8.03e9, None, 32, 32, 128),
    "run-e": ("dataset_pass", None, "job", None, None, None, None, None, None),
}
UNREAD = {"run_id": pl.String, "model": pl.String, "target_value": pl.Float64, "started_at": pl.Datetime("ms")}
PHASES = ("provision", "compile", "train")


def _tracker() -> dict[str, pl.DataFrame]:
    moment, text, whole, real = pl.Datetime("ms"), pl.String, pl.Int64, pl.Float64

    def frame(rows: list[tuple], **columns: pl.DataType | type) -> pl.DataFrame:
        return pl.DataFrame([(*row, "jobs") for row in rows], schema={**columns, "source_name": text}, orient="row")

    def moment_or_none(minutes: float | None) -> datetime | None:
        return None if minutes is None else at(minutes)

    run = frame(
        [
            (
                run_id, "events", "llama-8b", "corp-v3", 1.1e8, None, *UNITS.get(run_id, UNITS["run-a"]),
                8192, 256, "bf16", "3f2c1", "eval_loss", target, "min" if target != 2.05 else "max",
                1 if run_id == "run-e" else None, "compile_only" if run_id == "run-d" else None, "exp-1", "nlp",
                None, None, "3f2c1-0" if run_id == "run-f" else None,
                "run-d" if run_id == "run-e" else None, None, status,
                at(0), moment_or_none(ended), at(470),
            )
            for run_id, target, status, ended in RUNS
        ],
        run_id=text, source_system=text, model=text, dataset=text, dataset_tokens=real, dataset_samples=real,
        epoch_unit=text, epoch_unit_size=real, tokens_unit=text, tokens_unit_count=whole, params_total=real,
        params_active=real, n_layers=whole, n_heads=whole, head_dim=whole,
        seq_len=whole, global_batch_samples=whole, precision=text, code_revision=text, target_metric=text,
        target_value=real, target_direction=text, target_passes=whole, purpose=text, experiment=text, team=text,
        owner=text, parent_run_id=text, base_checkpoint_id=text, compile_run_id=text, workload_id=text, status=text,
        started_at=moment, ended_at=moment, last_seen_at=moment,
    )  # fmt: skip
    attempt = frame(
        [
            (run_id, no, at(begin), moment_or_none(end), reason, at(465), 2.5e8 * no)
            for run_id, no, begin, end, reason in ATTEMPTS
        ],
        run_id=text, attempt_no=whole, started_at=moment, ended_at=moment, end_reason=text, last_seen_at=moment,
        tokens_seen=real,
    )  # fmt: skip
    resource = frame(
        [
            (
                run_id, no, machine, MACHINES.get(machine, (None,))[0], "000033334444", "us-west-2", used,
                "cr-0b10c" if machine == "i-0e" else None, 0, "spot", at(begin), moment_or_none(end), "imds",
            )
            for run_id, no, machine, begin, end, used in STAYS
        ] + [
            (
                run_id, 1, f"any {kind}", kind, "000033334444", "us-west-2", None, None, 0, None, at(begin), at(end),
                "type_match",
            )
            for run_id, kind, begin, end in DESCRIBED
        ],
        run_id=text, attempt_no=whole, resource_id=text, instance_type=text, account_id=text, region_id=text,
        accelerators_used=whole, reservation_id=text, node_rank=whole, market=text, joined_at=moment, left_at=moment,
        evidence=text,
    )  # fmt: skip
    phase = frame(
        [
            (run_id, no, name, at(begin + 2 * step), at(begin + 2 * step + 2) if name != "train" else None)
            for run_id, no, begin, _, _ in ATTEMPTS
            for step, name in enumerate(PHASES)
        ],
        run_id=text, attempt_no=whole, phase=text, started_at=moment, ended_at=moment,
    )  # fmt: skip
    epoch = frame(
        [
            (run_id, no, index, at(begin + 6 + 35 * index), at(begin + 6 + 35 * (index + 1)), 100 * (index + 1),
             1.1e8 * (index + 1), None, None)
            for run_id, no, begin, _, _ in ATTEMPTS
            for index in range(3)
        ],
        run_id=text, attempt_no=whole, epoch_index=whole, started_at=moment, completed_at=moment, step=whole,
        tokens_seen=real, samples_seen=real, fraction=real,
    )  # fmt: skip
    checkpoint = frame(
        [
            (run_id, no, f"{no}-{index}", 50 * index, f"s3://{BUCKET}/{run_id}/{index}",
             at(begin + 20 * index), at(begin + 20 * index + 1.3), 41.7, 98_304_000_000,
             None if index else True, index != 2, 0.7e8 * index)
            for run_id, no, begin, _, _ in ATTEMPTS
            for index in range(1, 4)
        ],
        run_id=text, attempt_no=whole, checkpoint_id=text, step=whole, uri=text, save_started_at=moment,
        durable_at=moment, stall_seconds=real, bytes=whole, is_resumable=pl.Boolean, is_complete=pl.Boolean,
        tokens_seen=real,
    )  # fmt: skip
    evaluation = frame(
        [(run_id, 1, 100, "eval_loss", 2.05, "valid", at(150)) for run_id, *_ in RUNS],
        run_id=text, attempt_no=whole, step=whole, metric=text, value=real, split=text, evaluated_at=moment,
    )  # fmt: skip
    frames = {"run": run, "attempt": attempt, "resource": resource, "phase": phase}
    # What else is known of a run of which an event cannot be read.
    unread = frame([("run-z", "llama-8b", 2.05, at(7.0)), (None, None, None, None)], **UNREAD).match_to_schema(
        SCHEMAS["tracker_unread_run"], missing_columns="insert"
    )
    return {**frames, "epoch": epoch, "checkpoint": checkpoint, "evaluation": evaluation, "unread_run": unread}
