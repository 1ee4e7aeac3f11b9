"""How the engine reads the lines of a bill: a plan that compares each with every run grows with both."""

from __future__ import annotations

import pytest
from support.small_company import JULY, Company

from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.warehouse import Warehouse


@pytest.mark.parametrize("name", ["fct_charge", "detail_commitment_use_hourly", "fct_ledger_line"])
def test_lines_are_joined_by_key(name: str, built_company: Company) -> None:
    """DuckDB runs a left join whose condition holds an `or` as a blockwise nested loop."""
    builder = Builder(Warehouse(load_settings(built_company.config)))
    model = builder.catalog[name]
    with builder.open(model.inputs, JULY) as engine:
        plan = "".join(engine.query(f"explain {model.text}")["explain_value"])
    assert "HASH_JOIN" in plan
    assert "BLOCKWISE_NL_JOIN" not in plan
