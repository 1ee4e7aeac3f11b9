"""Configuration, read once: trainledger.toml overridden by TRAINLEDGER_* environment variables.

With `file`, the only module that reads the environment; everything else takes arguments.
"""

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from pipelines.base.address import is_s3
from pipelines.base.errors import UsageError
from pipelines.base.parse import parse_json
from pipelines.base.resources import accelerator_families, instance_types
from pipelines.config import sources
from pipelines.config.access import Access
from pipelines.config.access import Teams as ReaderTeams
from pipelines.config.decisions import Decisions
from pipelines.config.fields import Frozen, Text, repeated
from pipelines.config.file import read_config
from pipelines.config.listed import ListPrice, Machine
from pipelines.config.mistakes import SOURCES, first_mistake, refuse_secrets, refuse_unknown_variables
from pipelines.config.notify import Notify
from pipelines.config.policy import Policy, Privacy
from pipelines.config.spark import Spark
from pipelines.config.teams import Teams
from pipelines.config.terms import Terms

# delta-rs misreads these characters in the name of a folder, or panics.
_UNADDRESSABLE = re.compile(r"[\[\]^|\\\x7f]|%[0-9A-Fa-f]{2}")
# It takes an address of S3 for a URL, and would write outside of the prefix.
_UNADDRESSABLE_IN_S3 = re.compile(rf"{_UNADDRESSABLE.pattern}|[#?]|(?<!:)//|/\.\.?(?=/|$)")
STANDARD_TAGS = {"run_id": ("run_id", "RunId"), "owner": ("owner", "Owner"), "team": ("team", "Team")}


# Below it DuckDB cannot sort a month of few lines.
_LEAST_MEMORY = 256_000_000
# Numbers of each field of a cron line, and their names.
_CRON = (
    "[0-5]?[0-9]",
    "[01]?[0-9]|2[0-3]",
    "0?[1-9]|[12][0-9]|3[01]",
    "0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    "[0-7]|(?i:sun|mon|tue|wed|thu|fri|sat)",
)
_CRON_PARTS = (rf"(\*|({one})(-({one}))?)(/[1-9][0-9]?)?" for one in _CRON)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
CRON_LINE = "^" + " +".join(f"{part}(,{part})*" for part in _CRON_PARTS) + "$"


class Retention(Frozen):
    """Publications that stay: all of so many days, the last of each month, and those of these numbers."""

    days: int = Field(default=35, ge=1, le=36_500)
    publications: tuple[int, ...] = ()


class Warehouse(sources.S3Options):
    """Location of everything that is written, and the engine that runs the models."""

    location: sources.Location = "warehouse"
    engine: Literal["duckdb", "spark"] = "duckdb"
    memory_limit: str = Field(default="2GB", pattern=r"^[0-9]+(\.[0-9]+)? ?[KMGTkmgt]i?[Bb]$")
    threads: int | None = Field(default=None, ge=1, le=1024)
    spark: Spark = Spark()
    # Unset: builds remove nothing.
    retention: Retention | None = None
    # The public marts pass this gate in addition to their compiled checks.
    gate: Literal["great_expectations", "none"] = "great_expectations"

    @field_validator("memory_limit")
    @classmethod
    def _is_enough(cls, limit: str) -> str:
        number, unit = re.fullmatch(r"([0-9.]+) ?(.*)", limit).groups()  # pyright: ignore[reportOptionalMemberAccess]
        if float(number) * 1000 ** (" KMGT".index(unit[0].upper())) < _LEAST_MEMORY:
            raise ValueError("no bill can be built in that; write 256MB or more")
        return limit


class Schedule(Frozen):
    """When the daily run looks for changes; a cron line in UTC."""

    cron: str = Field(default="30 5 * * *", pattern=CRON_LINE)

    @field_validator("cron")
    @classmethod
    def _comes(cls, line: str) -> str:
        _, _, days, months, _ = line.lower().split()
        if min(_numbers(days, 31)) > max(_LONGEST[month - 1] for month in _numbers(months, 12)):
            raise ValueError("no month of it has that day, so the daily run would never start; write another day")
        return line


def _numbers(field: str, most: int) -> Iterator[int]:
    """The days or months that a field of a cron line names; a range may go on after the last one."""
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        first, last = (
            _MONTHS.index(one) + 1 if one in _MONTHS else int(one)
            for one in (("1", str(most)) if low == "*" else (low, high or (str(most) if step else low)))
        )
        for number in range(first, last + (most if last < first else 0) + 1, int(step or 1)):
            yield (number - 1) % most + 1


class _EnvironmentVariables(EnvSettingsSource):
    """Environment variables, whose JSON is bounded as that of files is."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        return parse_json(value)


class Settings(BaseSettings):
    """The whole configuration, immutable; locations are absolute or s3:// URIs."""

    model_config = SettingsConfigDict(env_prefix="TRAINLEDGER_", env_nested_delimiter="__", frozen=True, extra="forbid")

    warehouse: Warehouse = Warehouse()
    billing: tuple[sources.BillingSource, ...] = ()
    runs: tuple[sources.RunSource, ...] = ()
    serving: tuple[sources.ServingSource, ...] = ()
    reservations: tuple[sources.AnswerSource, ...] = ()
    proof: sources.ProofSource = sources.ProofSource()
    commitments: tuple[sources.AnswerSource, ...] = ()
    invoices: tuple[sources.InvoiceSource, ...] = ()
    capacity_offers: tuple[sources.CapacityOfferSource, ...] = ()
    machines: tuple[Machine, ...] = ()
    prices: tuple[ListPrice, ...] = ()
    tags: dict[Literal["run_id", "owner", "team"], tuple[str, ...]] = {}
    # Who stands for the owners that contracts name: a team or a mail address.
    owners: dict[Literal["ml-finops", "ml-platform"], Text] = {}
    decisions: Decisions = Decisions()
    teams: Teams = Teams()
    terms: Terms = Terms()
    policy: Policy = Policy()
    schedule: Schedule = Schedule()
    notify: Notify = Notify()
    privacy: Privacy = Privacy()
    # Unset: whoever reaches the dashboard sees every team.
    access: Access | None = None

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for kind in SOURCES:
            if twice := repeated(source.name for source in getattr(self, kind)):
                raise ValueError(f"[[{kind}]] name {twice!r} is used twice; give each source its own")
        models = {(profile, model) for source in self.serving for profile, model in source.models.items()}
        if twice := repeated(profile for profile, _ in models):
            raise ValueError(
                f"[[serving]] maps the profile {twice} to two models; keep one, or give each its own profile"
            )
        if twice := repeated(machine.instance_type for machine in self.machines):
            raise ValueError(f"[[machines]] contain {twice} twice; remove one")
        keys = (f"{one.instance_type} {one.region_id} {one.offer} {one.from_date}" for one in self.prices)
        if twice := repeated(keys):
            raise ValueError(f"[[prices]] contain {twice} twice; remove one")
        types = {
            *(row["instance_type"] for row in instance_types()),
            *(machine.instance_type for machine in self.machines),
        }
        for name in (price.instance_type for price in self.prices if price.instance_type not in types):
            near = "".join(f", such as to {one}," for one in get_close_matches(name, types, 1, 0.75))
            raise ValueError(
                f"[[prices]] have {name}, which is no known machine; correct it{near} or add it to [[machines]]"
            )
        return self

    @classmethod
    def settings_customise_sources(cls, settings_cls: Any, init_settings: Any, **others: Any) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The environment wins over the file, whose content arrives as init arguments."""
        return _EnvironmentVariables(settings_cls), init_settings

    @property
    def accelerator_families(self) -> dict[str, str]:
        """The accelerator family of each instance type, listed or configured."""
        return {**accelerator_families(), **{one.instance_type: one.accelerator_family for one in self.machines}}

    @property
    def tag_keys(self) -> dict[str, tuple[str, ...]]:
        """Accepted billing tag keys for each of run_id, owner and team."""
        return {**STANDARD_TAGS, **self.tags}

    def teams_of(self, reader: str | None) -> ReaderTeams:
        """The teams that a reader of the access policy may see; all of them (None) where no reader is named."""
        if reader is None:
            return None
        if self.access is None:
            raise UsageError(f"The reader {reader!r} has no policy; add [access] with policy to the configuration.")
        return self.access.teams_of(reader)


def load_settings(config: Path | None = None) -> Settings:
    """Settings from `config` (see `read_config`); a mistake names the file and the key."""
    return settings_from(*read_config(config))


def settings_from(path: Path, content: dict[str, Any]) -> Settings:
    """Settings from the content of the file at `path`, to which relative locations refer."""
    refuse_secrets(path, content)
    refuse_unknown_variables(os.environ, Settings)
    try:
        settings = Settings(**content)
    except SettingsError as error:
        value = f"a value that {error.__cause__}: {error}"
        raise UsageError(f"The environment overrides {path} with {value}; write it as JSON or unset it.") from None
    except ValidationError as error:
        raise UsageError(first_mistake(error, str(path), content, SOURCES, os.environ, Settings)) from None
    base = path.parent
    warehouse = _anchored(settings.warehouse, base)
    if warehouse.engine == "spark":
        try:
            warehouse = warehouse.model_copy(update={"spark": warehouse.spark.anchored(base)})
        except ValueError as error:
            raise UsageError(f"{path}: key 'warehouse.spark.jars': {error}.") from None
    unaddressable = _UNADDRESSABLE_IN_S3 if is_s3(warehouse.location) else _UNADDRESSABLE
    if found := unaddressable.search(warehouse.location):
        raise UsageError(
            f"{path}: key 'warehouse.location': {warehouse.location} contains {found[0]!r}, which the address of a "
            "Delta table cannot; choose another folder."
        )
    anchored = {kind: tuple(_anchored(source, base) for source in getattr(settings, kind)) for kind in SOURCES}
    _refuse_same_bill(anchored["billing"], path)
    _refuse_nested(warehouse, anchored["billing"], path)
    proof = _anchored(settings.proof, base, "registrations")
    decisions = settings.decisions.spelled(settings.policy.team_name).read(path, settings.accelerator_families)
    teams = settings.teams.read(path)
    access = settings.access and _anchored(settings.access, base, "policy")
    found = {"warehouse": warehouse, "proof": proof, "decisions": decisions, "teams": teams, "access": access}
    return settings.model_copy(update={**found, **anchored})


def _anchored(part: Any, base: Path, key: str = "location") -> Any:
    """Relative folders are relative to the configuration file, not to the caller's folder."""
    location = getattr(part, key)
    if location is None or "://" in location:
        return part
    try:
        # A link to itself is found where it is opened.
        return part.model_copy(update={key: os.path.realpath(base / Path(location).expanduser())})
    except RuntimeError:
        raise UsageError(f"{key} {location}: the home folder of that user is unknown; write the whole path.") from None


def _refuse_same_bill(billing: tuple[sources.BillingSource, ...], path: Path) -> None:
    read: dict[tuple[str | None, ...], list[sources.BillingSource]] = {}
    for source in billing:
        others = read.setdefault((source.location.rstrip("/"), source.endpoint_url), [])
        for other in others:
            # An entry without `export` reads whichever export is there.
            if other.export == source.export or None in (other.export, source.export):
                raise UsageError(
                    f"{path}: [[billing]] {other.name} and {source.name} have the same location, so its bill "
                    "would count twice; remove one, or name the `export` of each."
                )
        others.append(source)


def _refuse_nested(warehouse: Warehouse, billing: tuple[sources.BillingSource, ...], path: Path) -> None:
    """UsageError for a warehouse inside a bill, which would be read as one, and for a bill inside the warehouse."""
    for source in billing:
        if source.endpoint_url != warehouse.endpoint_url and is_s3(source.location):
            continue
        ours, theirs = (f"{location.rstrip('/')}/" for location in (warehouse.location, source.location))
        if ours.startswith(theirs) or theirs.startswith(ours):
            inside = "is inside" if ours.startswith(theirs) else "contains"
            raise UsageError(
                f"{path}: key 'warehouse.location': {warehouse.location} {inside} the bill of [[billing]] "
                f"{source.name}, {source.location}; choose a folder next to it."
            )


def settings_or_none() -> Settings | None:
    """The settings; None where there is no configuration yet, or one with a mistake."""
    try:
        return load_settings()
    except UsageError:
        return None
