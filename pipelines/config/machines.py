"""The `[[machines]]` section: instance types that the reviewed list does not have, or has otherwise."""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pipelines.base.resources import accelerator_peaks
from pipelines.config.fields import Frozen, Positive, Text

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

    @model_validator(mode="after")
    def _peaks_are_dense(self) -> Self:
        for (accelerator, name), dense in accelerator_peaks().items():
            peak = getattr(self, name)
            if accelerator == self.accelerator_name and peak == 2 * Decimal(dense):
                raise ValueError(
                    f"{name} {peak} is the peak of {accelerator} with sparsity; write the dense one, {dense}"
                )
        return self

    @property
    def listed(self) -> dict[str, Any]:
        """The row of it in `ref_instance_type`, as text."""
        values = {name: None if value is None else str(value) for name, value in self.model_dump().items()}
        return {**values, "source": "[[machines]]"}
