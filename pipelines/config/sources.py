"""Where things are read from: the sections of trainledger.toml that name a source."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.base.limits import UNPACK_RATIO

SourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Month = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")]
# No name of a folder, nor an S3 key, holds control characters.
Location = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class S3Options(Frozen):
    """How to reach an S3-compatible store; unset means the AWS default chain."""

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None


class BillingSource(S3Options):
    """One billing export: its root folder or s3:// prefix."""

    name: SourceName
    location: Location
    kind: Literal["auto", "cur", "cur2", "focus"] = "auto"
    # Of several exports below one prefix, the name of this one.
    export: str | None = None
    # An export that another took over from, or that took over, is read for these months alone (YYYY-MM).
    first_month: Month | None = None
    last_month: Month | None = None
    # Months that had lines and really have none any more; any other one that comes without a line is refused.
    empty_months: tuple[Month, ...] = ()
    # A file that unpacks to more than so many times its size is refused; bills unpack to 10 to 40 times.
    unpack_ratio: float = Field(default=UNPACK_RATIO, ge=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _months_are_in_order(self) -> BillingSource:
        if self.first_month and self.last_month and self.first_month > self.last_month:
            raise ValueError(f"first_month {self.first_month} is after last_month {self.last_month}; swap them")
        return self

    def reads(self, month: str) -> bool:
        """Whether a billing month (YYYY-MM) is read from here."""
        return (self.first_month or month) <= month <= (self.last_month or month)


class RunSource(S3Options):
    """One place where training runs are recorded."""

    name: SourceName
    kind: str = "events"
    location: Location
    # Where a source writes local time (sacct): the zone it does so in, such as Europe/Oslo.
    timezone: str = "UTC"
    # Whose checkpoints lie here: a run id, or the folders of saves with {run_id} in the place of the run's.
    run_id: str | None = Field(default=None, min_length=1)


class ReservationSource(S3Options):
    """Where reserved capacity is told: files of a location, or AWS itself in the given regions."""

    name: SourceName
    kind: Literal["file", "aws"] = "file"
    location: Location | None = None
    regions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_somewhere(self) -> ReservationSource:
        if (self.kind == "file") != (self.location is not None):
            raise ValueError("kind 'file' needs a location, and kind 'aws' has none")
        return self

    @property
    def asked_regions(self) -> tuple[str | None, ...]:
        """The regions to ask; None stands for the one of the profile."""
        return self.regions or (self.region,)


class ProofSource(S3Options):
    """Where the pre-registrations of comparisons lie: a folder of TOML files."""

    registrations: Location | None = None


class CommitmentSource(ReservationSource):
    """Where Savings Plans and reservations are told: saved answers of a location, or AWS itself."""
