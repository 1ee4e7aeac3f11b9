"""Kinds of values in the configuration, and what several sections of it have in common."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

# What is printed and put into SQL has no control characters, and is more than spaces.
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$")]
Month = Annotated[str, Field(pattern=r"^(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])$")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
AccountId = Annotated[str, Field(pattern=r"^[0-9]{12}$")]
Usd = Annotated[Decimal, Field(max_digits=20, decimal_places=10, allow_inf_nan=False)]
Positive = Annotated[Decimal, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)]
Amount = Annotated[Decimal, Field(gt=0, le=1_000_000_000, decimal_places=2, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Frozen(BaseModel):
    """A part of the configuration that never changes once read and has no other key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def mistakes(self) -> Iterator[str]:
        """What is wrong with keys that depend on each other, a sentence each without its period."""
        yield from ()

    @model_validator(mode="after")
    def _has_no_mistake(self) -> Self:
        if mistake := next(self.mistakes(), None):
            raise ValueError(mistake)
        return self


class Months(Frozen):
    """A range of months (YYYY-MM), both included; a missing end is open."""

    first_month: Month | None = None
    last_month: Month | None = None

    def mistakes(self) -> Iterator[str]:
        if self.first_month and self.last_month and self.first_month > self.last_month:
            yield f"first_month {self.first_month} is after last_month {self.last_month}; swap them"

    def reads(self, month: str) -> bool:
        """Whether a month (YYYY-MM) lies in the range."""
        return (self.first_month or month) <= month <= (self.last_month or month)


def repeated(names: Iterable[str]) -> str | None:
    """The first name, in alphabetical order, that occurs twice; None where each occurs once."""
    ordered = sorted(names)
    return next((one for one, other in pairwise(ordered) if one == other), None)
