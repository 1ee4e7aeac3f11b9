"""The `[[prices]]` section: list prices that the reviewed book does not have, or has otherwise."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from pipelines.config.fields import Frozen, Text, Usd


class ListPrice(Frozen):
    """A price in USD per hour of a whole instance, Linux on shared tenancy, from a day on."""

    instance_type: Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)?$")]
    region_id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    offer: Literal["on_demand", "capacity_block", "reserved"]
    from_date: date
    price_per_hour_usd: Annotated[Usd, Field(ge=0.01, le=1000)]
    is_from_date_exact: bool = False
    source: Text = "[[prices]]"

    @property
    def listed(self) -> dict[str, str]:
        """The row of it in `ref_list_price`, as text."""
        values = {name: str(value) for name, value in self.model_dump().items()}
        return {**values, "is_from_date_exact": str(self.is_from_date_exact).lower(), "as_of": str(self.from_date)}
