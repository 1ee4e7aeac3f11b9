"""The `[[machines]]` and `[[prices]]` sections: what the reviewed lists do not have, or have otherwise."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from pipelines.base.resources import REFERENCE, accelerator_peaks, instance_types, listed_rows
from pipelines.config.fields import Frozen, Positive, Text, Usd

_Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Machine(Frozen):
    """An instance type, without the `ml.` of SageMaker; peaks are dense, of one accelerator."""

    instance_type: Annotated[str, Field(pattern=r"^([a-z0-9-]+(\.[a-z0-9-]+)?|Standard_\w+)$")]
    accelerator_family: Literal["gpu", "trainium", "inferentia", "other"]
    accelerator_name: Text
    accelerator_count: _Count
    accelerator_memory_gib: _Count | None = None
    peak_bf16_tflops: Positive | None = None
    peak_fp8_tflops: Positive | None = None
    vcpu_count: _Count | None = None
    memory_gib: Positive | None = None

    def mistakes(self) -> Iterator[str]:
        for (accelerator, name), dense in accelerator_peaks().items():
            peak = getattr(self, name)
            if accelerator == self.accelerator_name and peak == 2 * Decimal(dense):
                yield f"{name} {peak} is the peak of {accelerator} with sparsity; write the dense one, {dense}"
        for row in instance_types():
            if row["instance_type"] == self.instance_type and row["accelerator_family"] in ("trainium", "inferentia"):
                chips = int(row["accelerator_count"])
                # NeuronCores of a chip, also joined into logical ones (facts training-runs 3).
                if self.accelerator_count in (2 * chips, 4 * chips, 8 * chips):
                    yield f"accelerator_count {self.accelerator_count} counts its cores; write its chips, {chips}"

    @property
    def listed(self) -> dict[str, Any]:
        """The row of it in `ref_instance_type`, as text."""
        values = {name: None if value is None else str(value) for name, value in self.model_dump().items()}
        return {**values, "source": "[[machines]]"}


class ListPrice(Frozen):
    """A price in USD per hour of a whole instance, Linux on shared tenancy, from a day on."""

    instance_type: Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)?$")]
    region_id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    offer: Literal["on_demand", "capacity_block", "reserved"]
    from_date: date
    price_per_hour_usd: Annotated[Usd, Field(ge=0.01, le=1000)]
    is_from_date_exact: bool = False
    source: Text = "[[prices]]"

    def mistakes(self) -> Iterator[str]:
        if self.offer == "on_demand" and not self.region_id[-1].isdigit():
            yield f"region_id {self.region_id} is not a region; an on_demand price has one, such as us-east-1"
        counts = {row["instance_type"]: int(row["accelerator_count"] or 1) for row in instance_types()}
        count = counts.get(self.instance_type, 1)
        for row in listed_rows(REFERENCE / "ref_list_price.csv"):
            whole = Decimal(row["price_per_hour_usd"])
            if (
                row["instance_type"] == self.instance_type
                and abs(self.price_per_hour_usd * count - whole) * 50 <= whole < count * whole
            ):
                yield (
                    f"price_per_hour_usd {self.price_per_hour_usd} is the price of one of the {count} accelerators of "
                    f"{self.instance_type}; write that of the whole instance, such as {whole}"
                )

    @property
    def listed(self) -> dict[str, str]:
        """The row of it in `ref_list_price`, as text."""
        values = {name: str(value) for name, value in self.model_dump().items()}
        return {**values, "is_from_date_exact": str(self.is_from_date_exact).lower(), "as_of": str(self.from_date)}
