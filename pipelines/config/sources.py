"""Where things are read from: the sections of trainledger.toml that name a source."""

from collections.abc import Iterator
from typing import Annotated, Literal, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field

from pipelines.base.limits import UNPACK_RATIO
from pipelines.config.fields import AccountId, Frozen, Month, Months


def _is_location(location: str) -> str:
    """ValueError for an address of S3 in another form, which would be taken for a folder."""
    if location.startswith(("arn:", "s3a://", "s3n://")) or (location[:3].lower() == "s3:" and location[:5] != "s3://"):
        raise ValueError("write an address of S3 as s3://bucket/prefix")
    return location


SourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# No name of a folder, nor an S3 key, holds control characters.
Location = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$"), AfterValidator(_is_location)]


class Reach(TypedDict):
    """The options of `S3Options` as keyword arguments."""

    endpoint_url: str | None
    region: str | None
    profile: str | None


class S3Options(Frozen):
    """How to reach an S3-compatible store; unset means the AWS default chain."""

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None

    @property
    def reach(self) -> Reach:
        return {"endpoint_url": self.endpoint_url, "region": self.region, "profile": self.profile}


class BillingSource(S3Options, Months):
    """One billing export: its root folder or s3:// prefix.

    An export that replaced another, or was replaced, is read for some months only (first_month, last_month).
    """

    name: SourceName
    location: Location
    kind: Literal["auto", "cur", "cur2", "focus"] = "auto"
    # Of several exports below one prefix, the name of this one.
    export: str | None = None
    # Of bill files without a manifest, a pattern that matches them at any level below the location, such as *.parquet,
    # or several.
    files: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        BeforeValidator(lambda it: (it,) if isinstance(it, str) else it),
    ] = ()
    # Months that had lines and are empty now; any other month that is delivered without lines is refused.
    empty_months: tuple[Month, ...] = ()
    # A file that unpacks to more than this many times its size is refused; bills unpack to 10 to 40 times.
    unpack_ratio: float = Field(default=UNPACK_RATIO, ge=1, allow_inf_nan=False)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.export and self.files:
            yield "`export` names one by its manifests, and `files` have none; remove one of the two"


class RunSource(S3Options):
    """One system or folder that records training runs."""

    name: SourceName
    kind: str = "events"
    location: Location
    # Time zone of a source that writes local time (sacct), such as Europe/Oslo.
    timezone: str = "UTC"
    # Of checkpoints: a run id, or the path of the save folders with {run_id} for the run.
    run_id: str | None = Field(default=None, min_length=1)


class ServingServer(Frozen):
    """The machine of a server that is known by its metrics: the folder of its scrapes, or the label `instance`."""

    server_id: Annotated[str, Field(min_length=1)]
    resource: Annotated[str, Field(min_length=1)]
    model: str | None = None
    precision: str | None = None
    instance_type: str | None = None
    account_id: str | None = None
    region: str | None = None
    accelerators_used: int | None = Field(default=None, gt=0)
    max_tokens_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    team: str | None = None


class ServingSource(S3Options, Months):
    """One system or folder that records servers of models, or calls of managed ones.

    CloudWatch is read from answers in a location, else from its API in some regions from `first_month` on.
    """

    name: SourceName
    kind: Literal["events", "vllm", "tgi", "neuron_monitor", "bedrock_log", "cloudwatch"] = "events"
    location: Location | None = None
    regions: tuple[str, ...] = ()
    # The latency at which a server's throughput counts as its capacity.
    ttft_target_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    itl_target_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    # Of metrics, which do not show their machine.
    servers: tuple[ServingServer, ...] = ()
    # Of calls: the model of each profile or alias that stands in its place.
    models: dict[str, str] = Field(default_factory=dict)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.servers and self.kind not in ("vllm", "tgi", "neuron_monitor"):
            yield "`servers` describes those of metrics; other kinds record them"
        is_queried = self.location is None
        if is_queried and self.kind != "cloudwatch":
            yield "`location` is missing; only kind 'cloudwatch' has an API to query"
        if is_queried != (self.first_month is not None) or (self.regions and not is_queried):
            yield "write either `location`, or `first_month` with `regions` to query the API of kind 'cloudwatch'"
        names = [server.server_id for server in self.servers]
        if len({*names}) < len(names):
            yield "`servers` has a server_id twice; remove one"


class AnswerSource(S3Options):
    """Reserved capacity or commitments: files of a location, or the API of AWS in some regions."""

    name: SourceName
    kind: Literal["file", "aws"] = "file"
    location: Location | None = None
    regions: tuple[str, ...] = ()

    def mistakes(self) -> Iterator[str]:
        if (self.kind == "file") != (self.location is not None):
            yield "kind 'file' needs a location, and kind 'aws' has none"

    @property
    def queried_regions(self) -> tuple[str | None, ...]:
        """The regions to query; None stands for the one of the profile."""
        return self.regions or (self.region,)


class ProofSource(S3Options):
    """The folder of pre-registrations of comparisons, TOML files."""

    registrations: Location | None = None


class InvoiceSource(AnswerSource, Months):
    """Invoices: files of a location, or the Invoicing API of AWS for some accounts and months."""

    accounts: tuple[AccountId, ...] = ()

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.kind == "aws" and not (self.accounts and self.first_month):
            yield "kind 'aws' needs `accounts` and the `first_month` of the invoices to query"


class CapacityOfferSource(AnswerSource):
    """Capacity that AWS offers: saved answers of a location, or the API for some instance types.

    `block_hours` is the length of the Capacity Blocks, `instance_count` the size of what is queried.
    """

    instance_types: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    instance_count: int = Field(default=1, ge=1, le=1000)
    block_hours: int = Field(default=24, ge=24, le=24 * 182, multiple_of=24)

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if (self.kind == "aws") != bool(self.instance_types):
            yield "kind 'aws' needs the `instance_types` to query, and kind 'file' has none"
