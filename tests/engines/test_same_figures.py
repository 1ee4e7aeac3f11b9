"""Every table, built by Spark from the same files as by DuckDB, is the same: values, types and order."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal
from reference_resources import House

from pipelines.models.catalog import load_catalog

pytestmark = pytest.mark.spark
MODELS = load_catalog().ordered


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.key)
def test_spark_makes_the_same_table(edge: House, model) -> None:
    for month in edge.slices(model):
        ours, theirs = edge.build(model, month, "spark"), edge.reference(model, month)
        assert types(ours) == types(theirs)
        assert_frame_equal(pl.read_parquet(ours), pl.read_parquet(theirs), check_exact=True)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.key)
def test_spark_finds_the_same_failing_rows(edge: House, model) -> None:
    for month in edge.slices(model):
        assert edge.check(model, month, "spark") == edge.check(model, month, "duckdb")


def types(file: Path) -> list[tuple[str, pa.DataType]]:
    """Columns and types in order. What Spark calls `required` DuckDB calls `optional`; readers do not care."""
    first = next(file.iterdir()) if file.is_dir() else file
    return [(field.name, field.type) for field in pq.read_schema(first)]


def test_no_table_is_compared_empty(edge: House) -> None:
    """An empty table is equal on any engine and proves nothing; the made-up month fills them all."""
    empty = {
        model.name
        for model in MODELS
        if not any(pl.read_parquet(edge.reference(model, month)).height for month in edge.slices(model))
    }
    assert empty == set()
