"""The `[policy]` section, choices where AWS leaves something open, and the `[privacy]` section."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, SecretStr, ValidationError, field_validator

from pipelines.base.errors import UsageError
from pipelines.base.limits import MOST_PASSES
from pipelines.config.fields import Frozen

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
PRIVACY_KEY = "TRAINLEDGER_PRIVACY__KEY"


class Policy(Frozen):
    """The `[policy]` section (docs/decisions/0007).

    `savings_plan_unused`: AWS reports no net value of a plan's unused hours; "scaled" multiplies the gross value by the
    fee's net over gross, "gross" takes it as it is. `identity_tolerance_usd`: how far a closed bill may miss an
    identity. `target_passes`: passes in a row after which a target counts as held, in addition to the first pass.
    `shared_cost`: showback of storage, network and control planes without a run; "keep" leaves them, "pro_rata" goes
    by the teams' cost of runs, "owner" by the line's tag, else by the largest user of its account.
    `assumed_eligible`: on-demand usage that commitments may cover without documentation: "hyperpod" and
    "warm_pool" by SageMaker's plans, "rate_unknown" (P6, Trn2, Trn3) by those of EC2. What a plan does cover counts in
    any case.
    `provisional_runs`: whether spend whose run tag names no recorded run is charged to a provisional run.
    `team_spelling`: "folded" takes names of teams that differ only in case or outer spaces for one team, in small
    letters; "exact" for several.
    `equal_quality_ratio`: how far final metrics of both sides may differ in a comparison without a registration.
    `as_of`: the moment after which fees of an open month do not count; None means its newest hour of use.
    """

    savings_plan_unused: Literal["scaled", "gross"] = "scaled"
    identity_tolerance_usd: Decimal = Field(default=Decimal("0.01"), ge=0, le=1_000_000, decimal_places=10)
    target_passes: int = Field(default=2, ge=1, le=MOST_PASSES)
    shared_cost: Literal["keep", "pro_rata", "owner"] = "keep"
    assumed_eligible: tuple[Literal["hyperpod", "warm_pool", "rate_unknown"], ...] = ()
    provisional_runs: bool = True
    team_spelling: Literal["folded", "exact"] = "folded"
    equal_quality_ratio: float = Field(default=0.01, ge=0, le=0.5)
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

    def team_name(self, name: str) -> str:
        """A team as it is named everywhere; sql/functions/team_name.sql does the same."""
        return name.strip().lower() if self.team_spelling == "folded" else name

    @classmethod
    def recorded(cls, record: Mapping[str, Any]) -> Self:
        """The policy from a publication's record; those of versions without `team_spelling` kept every spelling."""
        return cls(**{"team_spelling": "exact", **record})

    def cut_at(self, as_of: str) -> Self:
        """The policy with another `as_of`, a time with its zone; UsageError for anything else."""
        try:
            return type(self)(**{**self.model_dump(), "as_of": as_of})
        except ValidationError:
            fix = "write one such as 2026-07-14T12:00:00Z"
            raise UsageError(f"--as-of {as_of} is not a time with its zone; {fix}.") from None


class Privacy(Frozen):
    """The `[privacy]` section: what is published as pseudonyms; the key is $TRAINLEDGER_PRIVACY__KEY."""

    pseudonyms: tuple[Literal["accounts", "users"], ...] = ()
    key: SecretStr | None = Field(default=None, min_length=32)
