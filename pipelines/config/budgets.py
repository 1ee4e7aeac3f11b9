"""What a team may spend in a month, and the parts of it at which that is told."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from pipelines.config.fields import Currency, Month, Stated, Text

Threshold = Annotated[Decimal, Field(gt=0, le=10, decimal_places=4)]


class Budget(Stated):
    """One of `[[decisions.budgets]]`: an amount a month, in the bill's own currency."""

    team: Text
    amount_usd: Decimal = Field(gt=0, le=1_000_000_000, decimal_places=6, allow_inf_nan=False)
    currency: Currency = "USD"
    thresholds: tuple[Threshold, ...] = Field(default=(Decimal("0.5"), Decimal("0.8"), Decimal("1")), min_length=1)
    first_month: Month | None = None
    last_month: Month | None = None

    @model_validator(mode="after")
    def _is_in_order(self) -> Budget:
        if list(self.thresholds) != sorted(set(self.thresholds)):
            raise ValueError("thresholds must rise, each once, such as [0.5, 0.8, 1.0]")
        if self.first_month and self.last_month and self.first_month > self.last_month:
            raise ValueError(f"first_month {self.first_month} is after last_month {self.last_month}; swap them")
        return self


def overlapping(budgets: Sequence[Budget]) -> tuple[Budget, Budget] | None:
    """Two budgets of one team, currency and month; None where no month has two."""
    for number, one in enumerate(budgets):
        for other in budgets[:number]:
            first = max(one.first_month or "", other.first_month or "")
            last = min(one.last_month or "9999-99", other.last_month or "9999-99")
            if (one.team, one.currency) == (other.team, other.currency) and first <= last:
                return other, one
    return None
