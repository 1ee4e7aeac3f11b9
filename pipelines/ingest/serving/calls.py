"""Calls of managed models, which have no server: from their hourly sums to the rows of traffic."""

from collections.abc import Sequence

import polars as pl

from pipelines.config.sources import ServingSource
from pipelines.ingest.serving.records import SCHEMAS, SERVER, TRAFFIC, ServingRecords, table

# The last part of an ARN; a system profile is its model with the geography before it.
_NAME, _GEOGRAPHY = r"([^/]+)$", r"^(us|eu|apac|jp|au|ca|us-gov|global)\."
# What the bill names where a call was not of a foundation model.
_RESOURCE = r":(?:application-inference-profile|provisioned-model|imported-model|custom-model-deployment)/([^/]+)$"


def model_of(source: ServingSource, *columns: str) -> pl.Expr:
    """The model of a call: as configured for the id in the last of `columns`, else the first id there is."""
    mapped = pl.col(columns[-1]).replace_strict(source.models, default=None, return_dtype=pl.String)
    return pl.coalesce(mapped, pl.coalesce(*columns).str.extract(_NAME).str.replace(_GEOGRAPHY, ""))


def resource_of(column: str) -> pl.Expr:
    """The id of the profile or the provisioned or imported model that was called; null for a foundation model."""
    return pl.col(column).str.extract(_RESOURCE)


def call_records(source: ServingSource, sums: pl.DataFrame, warnings: Sequence[str]) -> ServingRecords:
    """Sums by hour as traffic: `started_at`, `model` and the counts; what else SCHEMAS has may be missing."""
    rows = sums.with_columns(
        source_name=pl.lit(source.name),
        ended_at=pl.col("started_at").dt.offset_by("1h"),
        is_quiet=pl.lit(False),
    )
    rows = rows.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in SCHEMAS[TRAFFIC].items() if name not in rows.columns
    )
    typed = rows.select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS[TRAFFIC].items())
    # An application profile has an id of letters and digits alone; the id of a model names its vendor.
    is_profile = ~pl.col("model").str.contains(".", literal=True) & ~pl.col("model").is_in([*source.models.values()])
    profiles = typed.filter(is_profile)["model"].unique().sort()
    unnamed = [
        f"{source.name}: {name} is the id of an inference profile or of a provisioned or imported model; add its model "
        f"to `models` of [[serving]] {source.name}."
        for name in profiles
    ]
    return ServingRecords(
        {SERVER: table(SERVER, []), TRAFFIC: typed.sort(pl.all(), nulls_last=True)}, [*warnings, *unnamed]
    )
