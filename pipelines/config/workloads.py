"""What leans rest on: what people know of their workloads, and which capacity they can get."""

from __future__ import annotations

import csv
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipelines.base import resources
from pipelines.config.fields import Positive, Stated, Text


class Workload(Stated):
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


class Offer(Stated):
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
        with (resources.REFERENCE / "ref_instance_type.csv").open(encoding="utf-8", newline="") as listed:
            known = {row["instance_type"]: row["accelerator_family"] for row in csv.DictReader(listed)}
        return known.get(self.instance_type.removeprefix("ml."))


class Leans(Stated):
    """From when an architecture counts as settling or as stable."""

    settling_months: int = Field(default=2, ge=0, le=120)
    stable_months: int = Field(default=6, ge=0, le=120)
