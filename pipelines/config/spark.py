"""`[warehouse.spark]`: which Spark runs the models."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator

from pipelines.config.fields import Frozen, Text
from pipelines.config.file import has_variable

# The master of a process that has a session already, or that spark-submit starts.
PLATFORM = "session"
CONNECT = "sc://"
_MASTER = r"^(local(\[[^\]]+\])?|session|yarn|(spark|k8s|sc)://[^\x00-\x20\x7f]+)$"


class Spark(Frozen):
    """Where Spark runs, the memory of each of its processes, jars, and any other setting of it."""

    master: str = Field(default="local[2]", pattern=_MASTER)
    memory: str | None = Field(default=None, pattern=r"^[0-9]+[kmgtKMGT]b?$")
    jars: tuple[Text, ...] = ()
    conf: dict[Text, Text] = Field(default_factory=dict)

    @field_validator("conf", mode="before")
    @classmethod
    def _as_text(cls, conf: Any) -> Any:
        """A name without quotes is a table of tables in TOML; Spark takes all values as text."""
        return flat(conf) if isinstance(conf, Mapping) else conf

    def mistakes(self) -> Iterator[str]:
        if self.is_joined and (self.memory or self.jars):
            key = "memory" if self.memory else "jars"
            yield f"{key} of a Spark that runs already is set where it is started; remove it"

    @property
    def address(self) -> str:
        """The master without the parameters of Spark Connect, which may hold a token."""
        return self.master.partition("/;")[0]

    @property
    def is_joined(self) -> bool:
        """Whether the application runs already and outlives this process."""
        return self.master == PLATFORM or self.master.startswith(CONNECT)

    @property
    def is_submitted(self) -> bool:
        """Whether spark-submit, or a platform that works like it, started this process."""
        return has_variable("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")

    def anchored(self, base: Path) -> Self:
        """With jars on this machine relative to the configuration file; ValueError for one that is not there."""
        jars = tuple(jar if re.match(r"[a-z0-9]+:", jar) else str((base / jar).resolve()) for jar in self.jars)
        if missing := [jar for jar in jars if jar.startswith("/") and not Path(jar).is_file()]:
            raise ValueError(f"{missing[0]} is not a file; correct its path or remove it")
        return self.model_copy(update={"jars": jars})


def flat(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables as one, with the names of Spark."""
    found: dict[str, Any] = {}
    for name, value in conf.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{more}": one for more, one in flat(value).items()}
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def setting_names(warehouse: Any) -> list[str]:
    """The names of all settings of Spark in a table that is not validated yet, parameters of its master included."""
    spark = warehouse.get("spark") if isinstance(warehouse, Mapping) else None
    if not isinstance(spark, Mapping):
        return []
    parameters = str(spark.get("master", "")).partition("/;")[2].split(";")
    conf = spark.get("conf")
    return [*(one.partition("=")[0] for one in parameters), *(flat(conf) if isinstance(conf, Mapping) else ())]
