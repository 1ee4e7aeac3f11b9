"""Where AWS leaves something open, the choice that is made; a publication says under which choices it was made."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipelines.base.errors import UsageError
from pipelines.base.limits import MOST_PASSES

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Policy(BaseModel):
    """The `[policy]` section (docs/decisions/0007).

    `savings_plan_unused`: AWS states no net value of a plan's unused hours; "scaled" takes the gross one by the fee's
    net over gross, "gross" takes it as it is. `identity_tolerance_usd`: how far a closed bill may miss an identity.
    `target_passes`: after how many passes in a row a target counts as held, beside the first pass.
    `shared_cost`: who storage, network and control planes without a run fall to in the showback; "keep" leaves them,
    "pro_rata" goes by the teams' cost of runs, "owner" by the line's tag, else by who uses its account most.
    `assumed_eligible`: on-demand usage that commitments may cover though no documentation says so: "hyperpod" by
    SageMaker's plans, "rate_unknown" (P6, Trn2, Trn3) by those of EC2. What a plan does cover counts in any case.
    `as_of`: where the fees of an open month are cut, after its newest hour of use; None cuts them there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    savings_plan_unused: Literal["scaled", "gross"] = "scaled"
    identity_tolerance_usd: Decimal = Field(default=Decimal("0.01"), ge=0, le=1_000_000, decimal_places=10)
    target_passes: int = Field(default=2, ge=1, le=MOST_PASSES)
    shared_cost: Literal["keep", "pro_rata", "owner"] = "keep"
    assumed_eligible: tuple[Literal["hyperpod", "rate_unknown"], ...] = ()
    as_of: AwareDatetime | None = None

    @field_validator("as_of", mode="before")
    @classmethod
    def _is_written_as_a_time(cls, as_of: Any) -> Any:
        # A bare number would be taken for seconds since 1970.
        if as_of is None or isinstance(as_of, datetime) or (isinstance(as_of, str) and _DATE.match(as_of)):
            return as_of
        raise ValueError("write a time with its zone, such as 2026-07-14T12:00:00Z")

    @field_validator("as_of")
    @classmethod
    def _has_a_time_in_utc(cls, as_of: datetime | None) -> datetime | None:
        try:
            return as_of and as_of.astimezone(UTC)
        except OverflowError:
            raise ValueError("write a time of the years 1 to 9999 in UTC") from None

    def cut_at(self, as_of: str) -> Policy:
        """The policy with another `as_of`, written as a time with its zone; UsageError when it is none."""
        try:
            return Policy(**{**self.model_dump(), "as_of": as_of})
        except ValidationError:
            raise UsageError(
                f"--as-of {as_of} is not a time with its zone; write one such as 2026-07-14T12:00:00Z."
            ) from None
