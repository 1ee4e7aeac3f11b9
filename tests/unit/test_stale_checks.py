"""A table whose checks read other tables is checked again when those change, and refused where they fail."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.ledgers import lazy_warehouse
from support.small_company import found

from pipelines.base.errors import CheckError
from pipelines.models.build import FailedChecks

LEDGER = "core/fct_ledger"


def test_a_change_of_what_only_a_check_reads_is_noticed(tmp_path: Path) -> None:
    """No input of fct_run is fct_ledger, but its runs have to sum to it: here the ledger becomes a dollar more."""
    builder = lazy_warehouse(Path(found(tmp_path).config))
    builder.bring(["fct_run"])
    (current,) = builder.build_parts("fct_run", [None])
    assert current.was_current

    rows = pl.read_parquet(builder.lake.files(LEDGER))
    is_first = pl.int_range(pl.len()) == rows["bucket"].index_of("run")
    added = pl.when(is_first).then(1).otherwise(0).cast(rows.schema["effective_cost_usd"])
    staged = builder.warehouse.staged(LEDGER, None)
    rows.with_columns(pl.col("effective_cost_usd") + added).write_parquet(staged)
    builder.lake.commit(LEDGER, [staged], "0" * 16, None)

    with pytest.raises(CheckError, match="core/fct_run is behind its inputs"):
        builder.confirm("fct_run")
    with pytest.raises(FailedChecks, match="runs do not sum to the ledger"):
        list(builder.build_parts("fct_run", [None]))
