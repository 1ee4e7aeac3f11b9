"""What a file of registrations may say, and its first mistake in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.config.sources import SourceName

_Words = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]
# A time would name two days in two zones.
_Day = Annotated[date, Field(strict=True)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Pair(_Told):
    gpu: _Words
    trainium: _Words


class Registration(_Told):
    """One comparison as registered."""

    name: SourceName
    workload_id: _Words
    registered_on: _Day
    target_metric: _Words
    target_direction: Literal["min", "max"]
    target_value: float | None = Field(default=None, allow_inf_nan=False)
    quality_margin: float = Field(ge=0, allow_inf_nan=False)
    planned_runs: int = Field(ge=1, le=10_000)
    cost_basis: Literal["list", "effective", "billed"]
    supersedes: SourceName | None = None
    pairs: tuple[_Pair, ...] = ()

    @property
    def seal(self) -> str:
        """SHA-256 of all it says, however the file writes it."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


class Exclusion(_Told):
    """A run left out, by the registration it cites."""

    registration: SourceName
    run_id: _Words
    reason: _Words
    excluded_on: _Day


class File(_Told):
    """All that a file says."""

    registration: tuple[Registration, ...] = ()
    exclusion: tuple[Exclusion, ...] = ()


def mistake_in(where: str, error: ValidationError, content: Mapping[str, Any]) -> str:
    """The first mistake: file, entry, key and the mend."""
    first = error.errors()[0]
    keys = [str(part) for part in first["loc"]]
    if len(keys) > 2:
        kind, number = keys[0], int(keys[1])
        names = (content[kind][number].get(key) for key in ("name", "run_id"))
        name = next((name for name in names if name and isinstance(name, str)), f"number {number + 1}")
        where += f", [[{kind}]] {name}"
        keys = keys[2:]
    key = ".".join(keys)
    if first["type"] == "extra_forbidden":
        return f"{where}: unknown key {key!r}; remove it or check its spelling."
    if first["type"] == "missing":
        return f"{where}: key {key!r} is missing; add it."
    if first["type"] in ("date_type", "is_instance_of"):
        return f"{where}: key {key!r}: write a day such as 2026-07-01, without quotes."
    if first["type"] == "tuple_type":
        return f"{where}: key {key!r}: write its heading in double brackets, [[{key}]]."
    return f"{where}: key {key!r}: {first['msg'].removeprefix('Value error, ')}."
