"""The `[decisions]` section: baselines, adjustments of savings, ports, workloads, offers, ways to serve, budgets."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError

from pipelines.base.errors import UsageError
from pipelines.base.parse import ParseError, parse_toml
from pipelines.config.fields import Currency, Frozen, Month, Months, Positive, Share, Text, Usd, repeated
from pipelines.config.mistakes import first_mistake

_Count = Annotated[int, Field(ge=1, le=1_000_000)]
_Days = Annotated[int, Field(ge=0, le=3650)]
Threshold = Annotated[Decimal, Field(gt=0, le=10, decimal_places=4)]


class Baseline(Frozen):
    """What a unit of work took on the GPU before anything was saved: `run_ids` names the runs that measure it.

    Without them the figures are asserted: instance-hours with their interval, and the share of the list price that was
    paid. The baseline's cost in a month is hours x that month's list price x the share.
    """

    name: Text
    version: int = Field(ge=1)
    frozen_on: date
    workload_id: Text
    gpu_instance_type: Text
    region_id: Text = "us-east-1"
    unit_measure: Literal["cost_to_target", "cost_per_epoch", "cost_per_million_tokens"]
    run_ids: tuple[Text, ...] = ()
    hours_per_unit: Positive | None = None
    hours_low_per_unit: Positive | None = None
    hours_high_per_unit: Positive | None = None
    paid_ratio: Positive | None = None
    sha256: str = ""

    def mistakes(self) -> Iterator[str]:
        hours = (self.hours_low_per_unit, self.hours_per_unit, self.hours_high_per_unit)
        known = [one for one in hours if one is not None]
        if self.run_ids and (known or self.paid_ratio is not None):
            yield "the runs of run_ids measure hours and paid_ratio; remove the figures, or run_ids"
        if not self.run_ids and len(known) < len(hours):
            yield "write run_ids, the GPU runs that measure the baseline"
        if known != sorted(known):
            yield "hours_per_unit must lie between hours_low_per_unit and hours_high_per_unit"
        if twice := repeated(self.run_ids):
            yield f"run_ids contain {twice} twice; remove one"


class BaselineFile(Frozen):
    """The file of a frozen baseline, and the digest of its bytes."""

    file: Text
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    def read(self, folder: Path) -> Baseline:
        """The baseline. UsageError where the bytes are not those of the digest, or do not form a baseline."""
        file = folder / self.file
        try:
            content = file.read_bytes()
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}; put the frozen baseline back.") from None
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise UsageError(
                f"{file} is not the baseline that was frozen: its SHA-256 is {found}, not {self.sha256}; restore it, "
                "or freeze a new version in a file of its own."
            )
        try:
            return Baseline(**{**parse_toml(content), "sha256": found})
        except ParseError as error:
            raise UsageError(f"{file} {error}.") from None
        except ValidationError as error:
            raise UsageError(first_mistake(error, str(file))) from None


class Adjustment(Frozen):
    """A one-off change of a month's savings; a positive amount adds to the avoided cost."""

    baseline: Text
    month: Month
    amount_usd: Usd
    reason: Text
    decided_on: date


class Port(Frozen):
    """A port of a workload to Trainium: its planned cost and its planned savings."""

    name: Text
    workload_id: Text
    started_on: date
    engineer_days: Annotated[float, Field(ge=0, le=1_000_000)]
    day_rate_usd: Usd
    pilot_run_ids: tuple[Text, ...] = ()
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


class Workload(Frozen):
    """Facts about a workload that neither bill nor runs contain; what is left out is unknown.

    Without `need_within_days` there is no deadline.
    """

    workload_id: Text
    purpose: Literal["pretrain", "finetune"] | None = None
    architecture: Literal["mainstream", "moderate_custom", "novel"] | None = None
    custom_cuda: Literal["none", "some", "heavy"] | None = None
    neuron_supported: Literal["yes", "no", "unknown"] = "unknown"
    architecture_changed_on: date | None = None
    team_is_cuda_native: bool | None = None
    runs_in_horizon: _Count | None = None
    region_id: Text | None = None
    need_within_days: _Days | None = None
    # Value of a result that is a day earlier.
    delay_usd_per_day: Usd | None = None


class Offer(Frozen):
    """Available capacity: lead time, purchase option and the price of an instance-hour."""

    instance_type: Text
    region_id: Text
    purchase_option: Literal["on_demand", "spot", "savings_plan", "capacity_block"]
    lead_days: _Days
    reported_on: date
    price_per_hour_usd: Positive | None = None
    block_hours: Annotated[int, Field(ge=1, le=24 * 366)] | None = None

    def mistakes(self) -> Iterator[str]:
        if (self.purchase_option == "capacity_block") != (self.block_hours is not None):
            yield "block_hours belongs to every offer of a capacity_block and to no other"


class Serving(Frozen):
    """Another way to serve a model: capacity by the hour, or tokens of a managed model at prices per million.

    What is left out is taken from the bill, the metrics of servers and the price book.
    """

    model: Text
    candidate_model: Text | None = None
    instance_type: Text | None = None
    region_id: Text | None = None
    usd_per_hour: Positive | None = None
    # Output tokens of a replica, all of a model without output, while the latency target holds.
    tokens_per_second: Positive | None = None
    # Output tokens in all tokens of the benchmark: at another mix a throughput is another.
    output_ratio: Share | None = None
    input_usd: Positive | None = None
    cache_read_usd: Positive | None = None
    cache_write_usd: Positive | None = None
    output_usd: Positive | None = None
    source: Text | None = None
    same_quality: bool | None = None
    meets_latency: bool | None = None
    port_cost_usd: Usd = Decimal(0)
    upkeep_usd_per_month: Usd = Decimal(0)
    horizon_months: int = Field(default=12, ge=1, le=120)

    @property
    def is_capacity(self) -> bool:
        """Whether it is paid by the hour."""
        return self.instance_type is not None or self.usd_per_hour is not None

    def mistakes(self) -> Iterator[str]:
        prices = (self.input_usd, self.cache_read_usd, self.cache_write_usd, self.output_usd)
        declared = [one for one in (*prices, self.usd_per_hour, self.tokens_per_second) if one is not None]
        if self.is_capacity and any(one is not None for one in prices):
            yield "capacity has no price of tokens; remove instance_type and usd_per_hour, or the prices"
        if not self.is_capacity and self.tokens_per_second is not None:
            yield "tokens_per_second belongs to an instance_type or to usd_per_hour; add one"
        if not self.is_capacity and self.input_usd is None and (declared or self.candidate_model is None):
            yield "write instance_type, usd_per_hour, input_usd, or the candidate_model that the bill prices"
        if declared and self.source is None:
            yield "write the source of its figures, such as a benchmark or a price list with its date"


class Maturity(Frozen):
    """Months without a change after which an architecture counts as settling, and as stable."""

    settling_months: int = Field(default=2, ge=0, le=120)
    stable_months: int = Field(default=6, ge=0, le=120)


class Budget(Months):
    """A team's monthly budget in the bill's own currency, and the shares of it at which a notice is sent."""

    team: Text
    amount_usd: Decimal = Field(gt=0, le=1_000_000_000, decimal_places=6, allow_inf_nan=False)
    currency: Currency = "USD"
    thresholds: tuple[Threshold, ...] = Field(default=(Decimal("0.5"), Decimal("0.8"), Decimal("1")), min_length=1)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if list(self.thresholds) != sorted(set(self.thresholds)):
            yield "thresholds must rise, each once, such as [0.5, 0.8, 1.0]"


class Decisions(Frozen):
    baselines: tuple[BaselineFile, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    ports: tuple[Port, ...] = ()
    workloads: tuple[Workload, ...] = ()
    offers: tuple[Offer, ...] = ()
    serving: tuple[Serving, ...] = ()
    maturity: Maturity = Maturity()
    budgets: tuple[Budget, ...] = ()
    _frozen: tuple[Baseline, ...] = PrivateAttr(default=())

    @property
    def frozen(self) -> tuple[Baseline, ...]:
        """The baselines as read from their files."""
        return self._frozen

    def record(self) -> dict[str, Any]:
        """All of it, as a publication records it."""
        baselines = [one.model_dump(mode="json") for one in self._frozen]
        return {"baselines": baselines} | self.model_dump(mode="json", exclude={"baselines"})

    @classmethod
    def recorded(cls, record: Mapping[str, Any]) -> Self:
        """The section from its `record`."""
        whole = cls(**{key: value for key, value in record.items() if key != "baselines"})
        whole._frozen = tuple(Baseline(**one) for one in record.get("baselines", ()))
        return whole

    def spelled(self, team_name: Callable[[str], str]) -> Self:
        """The section with the teams of its budgets as `team_name` spells them."""
        budgets = tuple(one.model_copy(update={"team": team_name(one.team)}) for one in self.budgets)
        return self.model_copy(update={"budgets": budgets})

    def read(self, path: Path, families: Mapping[str, str]) -> Self:
        """The section with its baselines, whose files are relative to the folder of the configuration `path`.

        `families` has the accelerator family of each instance type. UsageError for a baseline that is not what was
        frozen, and for entries that contradict each other.
        """
        frozen = tuple(one.read(path.parent) for one in self.baselines)
        for kind, names in (
            ("baselines", [f"{one.name} version {one.version}" for one in frozen]),
            ("baselines", [f"{one.workload_id} frozen on {one.frozen_on}" for one in frozen]),
            ("ports", [one.name for one in self.ports]),
            ("workloads", [one.workload_id for one in self.workloads]),
            ("offers", [f"{one.purchase_option} {one.instance_type} in {one.region_id}" for one in self.offers]),
        ):
            if twice := repeated(names):
                raise UsageError(f"{path}: [[decisions.{kind}]] contain {twice} twice; remove one.")
        for number, offer in enumerate(self.offers, start=1):
            if families.get(offer.instance_type.removeprefix("ml.")) not in ("gpu", "trainium"):
                raise UsageError(
                    f"{path}, [[decisions.offers]] number {number}: key 'instance_type': {offer.instance_type} is not "
                    "a GPU or Trainium instance; write one such as trn1.32xlarge."
                )
        for number, way in enumerate(self.serving, start=1):
            if way.instance_type and not families.get(way.instance_type.removeprefix("ml.")):
                raise UsageError(
                    f"{path}, [[decisions.serving]] number {number}: key 'instance_type': {way.instance_type} has no "
                    "known accelerator; write one such as inf2.xlarge, or add it to [[machines]]."
                )
        if twice := overlapping(self.budgets):
            fix = "end the first with last_month, or remove one"
            raise UsageError(f"{path}: [[decisions.budgets]] give {twice} for one month; {fix}.")
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


def overlapping(budgets: Sequence[Budget]) -> str | None:
    """The team and currency that have two budgets in a month; None where none has."""
    ordered = sorted(budgets, key=lambda one: (one.team, one.currency, one.first_month or ""))
    for one, other in pairwise(ordered):
        is_same = (one.team, one.currency) == (other.team, other.currency)
        if is_same and (other.first_month or "") <= (one.last_month or "9999-99"):
            return f"{one.team} two budgets in {one.currency}"
    return None
