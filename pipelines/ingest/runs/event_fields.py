"""Fields of run events and their forms, by kind of event (design 2; facts training-runs 2)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import polars as pl

from pipelines.base.limits import MOST_PASSES


@dataclass(frozen=True)
class Form:
    """Values of a field: `read` gives the clean value or raises ValueError, `wants` is the fix."""

    dtype: type[pl.DataType]
    read: Callable[[Any], Any]
    wants: str


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
_CLOCK = "[0-9]{2}:[0-9]{2}"
_RFC3339 = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_CLOCK}:[0-9]{{2}}(\.[0-9]+)?([Zz]|[+-]{_CLOCK})")


def _text(value: Any) -> str | None:
    if type(value) is not str:
        raise ValueError
    if not value.isascii():
        # Half a surrogate pair is legal JSON but no text that a table can hold.
        value.encode()
    return value or None


def _count(value: Any) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


def _passes(value: Any) -> int:
    if not 1 <= (count := _count(value)) <= MOST_PASSES:
        raise ValueError
    return count


def _number(value: Any) -> float:
    if type(value) is float and -1e300 < value < 1e300:
        return value
    if type(value) not in (int, float) or abs(value) > 1e300 or math.isnan(value):
        raise ValueError
    return float(value)


def _measure(value: Any) -> float:
    """A run that diverges measures NaN or Infinity; the measurement is kept, as NaN."""
    if value in ("NaN", "Infinity", "-Infinity") or (type(value) is float and not math.isfinite(value)):
        return math.nan
    return _number(value)


def _amount(value: Any) -> float:
    if (number := _number(value)) < 0:
        raise ValueError
    return number


def _share(value: Any) -> float:
    if not 0 < (number := _number(value)) <= 1:
        raise ValueError
    return number


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _moment(value: Any) -> int:
    if type(value) is not str:
        raise ValueError
    return _parsed(value)


# Many events share a time: a phase ends and the next begins, every rank saves.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    if not _RFC3339.fullmatch(text):
        raise ValueError
    return (datetime.fromisoformat(text.upper()) - EPOCH) // MS


def _one_of(*words: str) -> Form:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return value

    return Form(pl.String, read, f"write one of {', '.join(words)}")


TEXT = Form(pl.String, _text, "write text in quotes")
COUNT = Form(pl.Int64, _count, "write a whole number of 0 or more")
AMOUNT = Form(pl.Float64, _amount, "write a number of 0 or more")
NUMBER = Form(pl.Float64, _number, "write a finite number, or leave it out")
MEASURE = Form(pl.Float64, _measure, "write a number, or NaN")
PASSES = Form(pl.Int64, _passes, f"write a whole number from 1 to {MOST_PASSES}")
SHARE = Form(pl.Float64, _share, "write a number above 0 and up to 1")
FLAG = Form(pl.Boolean, _flag, "write true or false")
MOMENT = Form(pl.Int64, _moment, "write RFC 3339 with its zone, like 2026-07-01T10:02:11Z or +02:00 for the Z")

_RUN_TEXTS = (
    "model",
    "dataset",
    "precision",
    "code_revision",
    "target_metric",
    "purpose",
    "experiment",
    "team",
)
# All that describes a machine without an id.
MACHINE = ("instance_type", "account_id", "region")
TARGET = ("target_metric", "target_value", "target_direction")
FIELDS: dict[str, dict[str, Form]] = {
    "run_started": {
        **dict.fromkeys(
            (*_RUN_TEXTS, "workload_id", "owner", "parent_run_id", "base_checkpoint_id", "compile_run_id"), TEXT
        ),
        **dict.fromkeys(("dataset_tokens", "dataset_samples", "epoch_unit_size"), AMOUNT),
        **dict.fromkeys(("params_total", "params_active"), AMOUNT),
        **dict.fromkeys(("seq_len", "global_batch_samples", "n_layers", "n_heads", "head_dim"), COUNT),
        "epoch_unit": _one_of("dataset_pass", "token_block", "sample_block", "step_block"),
        "tokens_unit": _one_of("job", "device", "core"),
        "tokens_unit_count": COUNT,
        "target_value": NUMBER,
        "target_direction": _one_of("min", "max"),
        "target_passes": PASSES,
    },
    "run_ended": {"status": _one_of("completed", "failed", "killed", "abandoned", "unknown")},
    "attempt_started": {},
    "attempt_ended": {"reason": TEXT},
    "resource_joined": {
        **dict.fromkeys(("resource", "instance_type", "account_id", "region", "reservation_id", "market"), TEXT),
        **dict.fromkeys(("accelerators_used", "node_rank"), COUNT),
        "evidence": _one_of("imds", "api", "nodemap", "tag", "type_match"),
    },
    "resource_left": {"resource": TEXT},
    "phase_started": {"phase": TEXT},
    "phase_ended": {"phase": TEXT},
    "epoch_started": {"epoch": COUNT},
    "epoch_completed": {
        **dict.fromkeys(("epoch", "step"), COUNT),
        **dict.fromkeys(("tokens_seen", "samples_seen"), AMOUNT),
        "fraction": SHARE,
    },
    "checkpoint_started": {"checkpoint_id": TEXT, "uri": TEXT, "step": COUNT},
    "checkpoint_saved": {
        **dict.fromkeys(("checkpoint_id", "uri"), TEXT),
        **dict.fromkeys(("step", "bytes"), COUNT),
        **dict.fromkeys(("stall_seconds", "tokens_seen"), AMOUNT),
        **dict.fromkeys(("resumable", "complete"), FLAG),
        **dict.fromkeys(("save_started_at", "durable_at"), MOMENT),
        "kind": _one_of("full", "weights_only", "adapter", "export"),
    },
    "evaluation": {**dict.fromkeys(("metric", "split"), TEXT), "value": MEASURE, "step": COUNT},
    "heartbeat": {"step": COUNT, "tokens_seen": AMOUNT, "samples_seen": AMOUNT},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("resource_joined", "resource_left"), ("resource",)),
    **dict.fromkeys(("phase_started", "phase_ended"), ("phase",)),
    **dict.fromkeys(("epoch_started", "epoch_completed"), ("epoch",)),
    "evaluation": ("metric", "value"),
}
# Other names of the fields above, and fields that no table keeps.
SPELLINGS = {
    "end_reason": "reason",
    "resource_id": "resource",
    "billing_resource_key": "resource",
    "region_id": "region",
    "dataset_id": "dataset",
    "accel_used": "accelerators_used",
    "epoch_index": "epoch",
    "is_resumable": "resumable",
    "is_complete": "complete",
}
SKIPPED = frozenset(
    name
    for names in (
        "event run_id at attempt attempt_no rank local_rank",
        "run_name platform model_family planned_tokens seed target_split tags",
        "orchestrator orchestrator_job_id orchestrator_attempt requested_at resumed_from_checkpoint_id",
        "first_step last_step world_size clock_offset_ms",
        "resource_kind az accel_kind accel_total instance_launched_at",
        "source epoch_pos loss start_step end_step is_recomputed",
        "durable_evidence is_async object_count samples_seen direction in_loop",
    )
    for name in names.split()
)


def any_machine(instance_type: str, node_rank: int | None) -> str:
    """The name of a machine known only by its type; those of one gang differ by their rank."""
    return f"any {instance_type}" if not node_rank else f"any {instance_type} {node_rank}"


def clock(at: int) -> str:
    """Milliseconds since 1970 UTC as RFC 3339."""
    return (EPOCH + at * MS).isoformat().replace("+00:00", "Z")
