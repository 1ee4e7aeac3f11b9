"""The `[decisions]` section: frozen baselines, adjustments of savings, ports, budgets, what leans rest on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr

from pipelines.base.errors import UsageError
from pipelines.config.baselines import Baseline, BaselineFile, read_baseline
from pipelines.config.budgets import Budget, overlapping
from pipelines.config.fields import Month, Share, Stated, Text, Usd
from pipelines.config.workloads import Leans, Offer, Workload


class Adjustment(Stated):
    """A change of a month's savings that is no routine: positive adds to what was avoided."""

    baseline: Text
    month: Month
    amount_usd: Usd
    reason: Text
    decided_on: date


class Port(Stated):
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


class Decisions(Stated):
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
        frozen = tuple(read_baseline(path.parent / one.file, one.sha256) for one in self.baselines)
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
