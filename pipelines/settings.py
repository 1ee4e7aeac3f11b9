"""Configuration, read once: trainledger.toml overridden by TRAINLEDGER_* environment variables.

The only module that reads the environment; everything else takes arguments.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pipelines.errors import UsageError

CONFIG_NAME = "trainledger.toml"
DEMO_FOLDER = "trainledger-demo"
STANDARD_TAGS: dict[str, tuple[str, ...]] = {
    "run_id": ("run_id", "RunId"),
    "owner": ("owner", "Owner"),
    "team": ("team", "Team"),
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class S3Options(_Frozen):
    """How to reach an S3-compatible store; unset means the AWS default chain."""

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None


class Warehouse(S3Options):
    """Where everything we write lives, and which engine runs the models."""

    location: str = "warehouse"
    engine: Literal["duckdb", "spark"] = "duckdb"
    memory_limit: str = "2GB"
    threads: int | None = Field(default=None, ge=1)
    spark_master: str = "local[2]"


class BillingSource(S3Options):
    """One billing export: its root folder or s3:// prefix."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    location: str
    kind: Literal["auto", "cur", "cur2", "focus"] = "auto"


class RunSource(S3Options):
    """One place where training runs are recorded."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    kind: str = "events"
    location: str


class Schedule(_Frozen):
    """When the daily run looks for changes; a cron line in UTC."""

    cron: str = "30 5 * * *"


class Settings(BaseSettings):
    """The whole configuration, immutable; locations are absolute or s3:// URIs."""

    model_config = SettingsConfigDict(
        env_prefix="TRAINLEDGER_", env_nested_delimiter="__", frozen=True, extra="forbid"
    )

    warehouse: Warehouse = Warehouse()
    billing: tuple[BillingSource, ...] = ()
    runs: tuple[RunSource, ...] = ()
    tags: dict[str, tuple[str, ...]] = {}
    schedule: Schedule = Schedule()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Settings:
        for kind, sources in (("billing", self.billing), ("runs", self.runs)):
            names = [source.name for source in sources]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"[[{kind}]] name {twice[0]!r} is used twice; give each source its own")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose content arrives as init arguments."""
        return env_settings, init_settings

    @property
    def tag_keys(self) -> dict[str, tuple[str, ...]]:
        """Accepted billing tag keys for each of run_id, owner and team."""
        return {**STANDARD_TAGS, **self.tags}


def find_config(given: Path | None = None) -> Path:
    """The configuration file to use: the given one, $TRAINLEDGER_CONFIG, the one here, the demo's."""
    named = given or (Path(env) if (env := os.environ.get("TRAINLEDGER_CONFIG")) else None)
    if named is not None:
        if not named.is_file():
            raise UsageError(f"{named} does not exist; give --config the path of a {CONFIG_NAME}.")
        return named
    for candidate in (Path(CONFIG_NAME), Path(DEMO_FOLDER) / CONFIG_NAME):
        if candidate.is_file():
            return candidate
    raise UsageError(
        f"No {CONFIG_NAME} here; write one (README, 'Your own bill') or run `trainledger demo` first."
    )


def load_settings(config: Path | None = None) -> Settings:
    """Settings from `config` (see `find_config`); a mistake names the file and the key."""
    path = find_config(config).resolve()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    try:
        settings = Settings(**content)
    except ValidationError as error:
        raise UsageError(f"{path}: {_first_mistake(error)}.") from None
    base = path.parent
    return settings.model_copy(
        update={
            "warehouse": _anchored(settings.warehouse, base),
            "billing": tuple(_anchored(source, base) for source in settings.billing),
            "runs": tuple(_anchored(source, base) for source in settings.runs),
        }
    )


def _anchored(part: Any, base: Path) -> Any:
    """Relative folders are relative to the configuration file, not to the caller's folder."""
    if part.location.startswith("s3://"):
        return part
    return part.model_copy(update={"location": str((base / Path(part.location).expanduser()).resolve())})


def _first_mistake(error: ValidationError) -> str:
    mistake = error.errors()[0]
    key = ".".join(str(part) for part in mistake["loc"]) or "configuration"
    if mistake["type"] == "extra_forbidden":
        return f"unknown key {key!r}; remove it or check its spelling"
    return f"key {key!r}: {mistake['msg'].removeprefix('Value error, ')}"


def schedule_cron() -> str:
    """The configured schedule, or the default one where there is no configuration yet."""
    try:
        return load_settings().schedule.cron
    except UsageError:
        return Schedule().cron
