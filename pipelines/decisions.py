"""What people decided and the configuration tells: frozen baselines, adjustments, ports, what leans rest on, budgets.

A baseline is a file of its own that is never edited: the configuration names it with its SHA-256.
"""

from __future__ import annotations

import csv
import hashlib
import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from pipelines import house
from pipelines.budgets import Budget, Month, overlapping
from pipelines.errors import UsageError

Text = Annotated[str, Field(min_length=1)]
Usd = Annotated[Decimal, Field(max_digits=20, decimal_places=10, allow_inf_nan=False)]
Positive = Annotated[Decimal, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Baseline(_Frozen):
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


class BaselineFile(_Frozen):
    """Where a frozen baseline lies, and what its bytes must come to."""

    file: Text
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Adjustment(_Frozen):
    """A change of a month's savings that is no routine: positive adds to what was avoided."""

    baseline: Text
    month: Month
    amount_usd: Usd
    reason: Text
    decided_on: date


class Port(_Frozen):
    """A port of a workload to Trainium: what it was to cost, what it was to bring."""

    name: Text
    workload_id: Text
    started_on: date
    engineer_days: Annotated[float, Field(ge=0, le=1_000_000)]
    day_rate_usd: Usd
    spike_run_ids: tuple[Text, ...] = ()
    validation_run_ids: tuple[Text, ...] = ()
    failed_pair_run_ids: tuple[Text, ...] = ()
    further_cost_usd: Usd = Decimal(0)
    upkeep_usd_per_month: Usd = Decimal(0)
    planned_gpu_cost_usd_per_run: Usd | None = None
    planned_saving_ratio: Annotated[float, Field(lt=1, ge=-100)] | None = None
    runs_per_month: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    horizon_months: int = Field(default=12, ge=1, le=120)
    discount_ratio: Share = 0.1
    gpu_price_fall_ratio: Share = 0.2
    success_ratio: Share = 1.0


class Workload(_Frozen):
    """What people know of a workload and neither bill nor runs tell; what is left out is unknown, and asks for a spike.

    Without `need_within_days` nothing is needed by a day.
    """

    workload_id: Text
    purpose: Literal["pretrain", "finetune"] | None = None
    architecture: Literal["mainstream", "moderate_custom", "novel"] | None = None
    custom_cuda: Literal["none", "some", "heavy"] | None = None
    neuron_supported: Literal["yes", "no", "unknown"] = "unknown"
    architecture_changed_on: date | None = None
    team_is_cuda_native: bool | None = None
    runs_in_horizon: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    region_id: Text | None = None
    need_within_days: Annotated[int, Field(ge=0, le=3650)] | None = None


class Offer(_Frozen):
    """Capacity that can be had: how soon, how bought, at which price of an instance-hour."""

    instance_type: Text
    region_id: Text
    purchase_option: Literal["on_demand", "spot", "savings_plan", "capacity_block"]
    lead_days: int = Field(ge=0, le=3650)
    told_on: date
    price_per_hour_usd: Positive | None = None
    block_hours: Annotated[int, Field(ge=1, le=24 * 366)] | None = None

    @model_validator(mode="after")
    def _only_blocks_have_hours(self) -> Offer:
        if (self.purchase_option == "capacity_block") != (self.block_hours is not None):
            raise ValueError("block_hours belongs to every offer of a capacity_block and to no other")
        return self

    @property
    def accelerator_family(self) -> str | None:
        """As the reviewed list of machines has it; None for one it lacks."""
        with (house.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as listed:
            known = {row["instance_type"]: row["accelerator_family"] for row in csv.DictReader(listed)}
        return known.get(self.instance_type.removeprefix("ml."))


class Leans(_Frozen):
    """From when an architecture counts as settling or as stable."""

    settling_months: int = Field(default=2, ge=0, le=120)
    stable_months: int = Field(default=6, ge=0, le=120)


class Decisions(_Frozen):
    """The `[decisions]` section."""

    baselines: tuple[BaselineFile, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    ports: tuple[Port, ...] = ()
    workloads: tuple[Workload, ...] = ()
    offers: tuple[Offer, ...] = ()
    leans: Leans = Leans()
    budgets: tuple[Budget, ...] = ()
    _frozen: tuple[Baseline, ...] = PrivateAttr(default=())

    @property
    def frozen(self) -> tuple[Baseline, ...]:
        """The baselines as read from their files."""
        return self._frozen

    def told(self) -> dict[str, Any]:
        """All of it, as a publication records it."""
        return {"baselines": [one.model_dump(mode="json") for one in self._frozen]} | self.model_dump(
            mode="json", include={"adjustments", "ports", "workloads", "offers", "leans", "budgets"}
        )

    @classmethod
    def recorded(cls, told: Mapping[str, Any]) -> Decisions:
        """These again, as `told` recorded them."""
        whole = cls(**{key: value for key, value in told.items() if key != "baselines"})
        whole._frozen = tuple(Baseline(**one) for one in told.get("baselines", ()))
        return whole

    def read(self, path: Path) -> Decisions:
        """These with their baselines, whose files lie beside the configuration `path`.

        UsageError for a file that is not what was frozen, and for what contradicts another.
        """
        frozen = tuple(_read(path.parent / one.file, one.sha256) for one in self.baselines)
        _refuse_twice(path, "baselines", [f"{one.name} version {one.version}" for one in frozen])
        _refuse_twice(path, "baselines", [f"{one.workload_id} frozen on {one.frozen_on}" for one in frozen])
        _refuse_twice(path, "ports", [one.name for one in self.ports])
        _refuse_twice(path, "workloads", [one.workload_id for one in self.workloads])
        offered = [f"{one.purchase_option} {one.instance_type} in {one.region_id}" for one in self.offers]
        _refuse_twice(path, "offers", offered)
        _refuse_unknown_types(path, self.offers)
        if two := overlapping(self.budgets):
            raise UsageError(
                f"{path}: [[decisions.budgets]] give {two[0].team} two budgets in {two[0].currency} for one month; "
                "end the first with last_month, or remove one."
            )
        names = {one.name for one in frozen}
        for number, adjustment in enumerate(self.adjustments, start=1):
            if adjustment.baseline not in names:
                raise UsageError(
                    f"{path}, [[decisions.adjustments]] number {number}: key 'baseline': there is no baseline "
                    f"{adjustment.baseline}; name one of {', '.join(sorted(names)) or 'those you freeze first'}."
                )
        whole = self.model_copy()
        whole._frozen = frozen
        return whole


def _read(file: Path, sha256: str) -> Baseline:
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
        told = tomllib.loads(content.decode())
        return Baseline(**{**told, "sha256": found})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}.") from None
    except ValidationError as error:
        mistake = error.errors()[0]
        key = ".".join(map(str, mistake["loc"]))
        said = mistake["msg"].removeprefix("Value error, ")
        raise UsageError(f"{file}: {f'key {key!r}: ' if key else ''}{said[0].lower()}{said[1:]}.") from None


def _refuse_unknown_types(path: Path, offers: tuple[Offer, ...]) -> None:
    for number, offer in enumerate(offers, start=1):
        if offer.accelerator_family not in ("gpu", "trainium"):
            raise UsageError(
                f"{path}, [[decisions.offers]] number {number}: key 'instance_type': {offer.instance_type} is no GPU "
                "or Trainium machine; write one such as trn1.32xlarge."
            )


def _refuse_twice(path: Path, kind: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{path}: [[decisions.{kind}]] tell {twice[0]} twice; remove one.")
