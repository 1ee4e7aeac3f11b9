"""Kinds of values that statements are made of, each refused by its key where it is another."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# What is printed and put into SQL has no control characters.
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")]
Month = Annotated[str, Field(pattern=r"^(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])$")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
AccountId = Annotated[str, Field(pattern=r"^[0-9]{12}$")]
Usd = Annotated[Decimal, Field(max_digits=20, decimal_places=10, allow_inf_nan=False)]
Positive = Annotated[Decimal, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)]
Amount = Annotated[Decimal, Field(gt=0, le=1_000_000_000, decimal_places=2, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Stated(BaseModel):
    """A part of the configuration that never changes once read and knows no other key."""

    model_config = ConfigDict(frozen=True, extra="forbid")
