"""Baselines: what a unit of work took on the GPU before anything was saved, frozen in a file that is never edited."""

from __future__ import annotations

import hashlib
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from pipelines.base.errors import UsageError
from pipelines.base.parse import ParseError, parse_toml
from pipelines.config.fields import Positive, Stated, Text


class Baseline(Stated):
    """What a unit of work took on the GPU before anything was saved: instance-hours, with their interval, and the
    share of the list price that was paid. Its cost in a month is hours x that month's list price x the share."""

    name: Text
    version: int = Field(ge=1)
    frozen_on: date
    workload_id: Text
    gpu_instance_type: Text
    region_id: Text = "us-east-1"
    unit_measure: Literal["cost_to_target", "cost_per_epoch", "cost_per_million_tokens"]
    hours_per_unit: Positive
    hours_low_per_unit: Positive
    hours_high_per_unit: Positive
    paid_ratio: Positive = Decimal(1)
    sha256: str = ""

    @model_validator(mode="after")
    def _interval_holds_it(self) -> Baseline:
        if not self.hours_low_per_unit <= self.hours_per_unit <= self.hours_high_per_unit:
            raise ValueError("hours_per_unit must lie between hours_low_per_unit and hours_high_per_unit")
        return self


class BaselineFile(Stated):
    """Where a frozen baseline lies, and what its bytes must come to."""

    file: Text
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


def read_baseline(file: Path, sha256: str) -> Baseline:
    """The baseline frozen in `file`. UsageError where its bytes do not come to `sha256`, or state something else."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}; put the frozen baseline back.") from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise UsageError(
            f"{file} is not the baseline that was frozen: its SHA-256 is {found}, not {sha256}; restore it, or freeze "
            "a new version in a file of its own."
        )
    try:
        told = parse_toml(content)
        return Baseline(**{**told, "sha256": found})
    except ParseError as error:
        raise UsageError(f"{file} {error}.") from None
    except ValidationError as error:
        mistake = error.errors()[0]
        key = ".".join(map(str, mistake["loc"]))
        said = mistake["msg"].removeprefix("Value error, ")
        raise UsageError(f"{file}: {f'key {key!r}: ' if key else ''}{said[0].lower()}{said[1:]}.") from None
