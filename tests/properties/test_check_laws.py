"""The compiled checks and Great Expectations agree on every stored table, good and damaged.

Of each check both give the same verdict, the same number of failing rows and the same rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.damaged_rows import damaged
from support.ledgers import build_warehouse, open_tables

from pipelines.demo.write import write_demo
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models import gate as gates
from pipelines.models.catalog import INPUT_TABLES, Model, load_catalog
from pipelines.models.checks import is_query
from pipelines.models.contract import Contract, load_contract
from pipelines.models.gate import ExpectationsGate
from pipelines.models.marts import view_published
from pipelines.models.session import DELIVERIES, delivery_select
from pipelines.models.validate import validate
from pipelines.warehouse.lake import Lake

STORED = [model for model in load_catalog().ordered if model.stored]
# Great Expectations fetches this many rows of a query at most; of a column as many as requested.
FETCHED, ALL = 200, 100_000
# A row of the table alone does not break these: they turn on other tables, or on how many rows there are.
UNBROKEN = {
    "detail_bill_identity_monthly": {"in_line_discounts_in_no_effective_cost"},
    "detail_commitment_reconciliation": {"charges_of_an_unknown_contract"},
    "detail_commitment_use_daily": {"eligible_usage_without_a_list_price"},
    "fct_charge_sum_monthly": {"month_of_an_account_delivered_by_two_sources"},
    "stg_aws__invoice_total": {"bill_of_a_payer_without_any_cost"},
    "fct_capacity_block_piece": {"refund_of_an_unknown_capacity_block"},
    "fct_invoice_monthly": {"bill_and_charges_differ"},
    "fct_resource_hourly": {
        "accelerator_time_without_hours_or_an_end_stays_unattributed",
        "an_instance_is_billed_for_part_of_another_hour",
        "an_open_bill_has_more_than_an_hour_of_an_instance",
    },
    "fct_resource_share_hourly": {"machine_of_another_type_on_the_bill_than_in_its_run"},
    "detail_serving_capacity_hourly": {"server_whose_machines_cost_nothing"},
    "dim_run": {"tokens_far_from_steps_times_batch_times_length"},
    "fct_run": {
        "accelerator_type_missing_from_ref_instance_type",
        "run_whose_evaluation_is_no_number",
        "runs_claim_more_of_a_machine_than_it_has",
    },
    "fct_restatement": {
        "delivery_rolled_back_to_an_earlier_one",
        "delivery_changed_under_its_id",
        "delivery_whose_manifest_is_gone",
        "the_newest_month_of_a_payer_is_missing",
    },
    "mart_silicon_comparison": {
        "registration_names_a_run_of_another_workload",
        "verdict_of_a_month_that_is_not_closed",
    },
    "detail_restated_figure": {
        "published_month_no_longer_read",
        "published_run_no_longer_recorded",
        "days_that_were_published_are_gone",
    },
    "detail_budget_monthly": {"budget_of_a_team_that_no_run_and_no_bill_names_so"},
}
Warehouse = tuple[Lake, DuckDBEngine, ExpectationsGate]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """The demo, built without Great Expectations, and an engine that holds all of its tables."""
    builder = build_warehouse(write_demo(tmp_path_factory.mktemp("demo")).config)
    tables = {name for model in STORED for name in (model.name, *load_contract(model.key).reads)} - INPUT_TABLES
    with open_tables(builder, tables) as engine:
        assert isinstance(engine, DuckDBEngine)
        engine.view_sql(DELIVERIES, delivery_select(builder.warehouse.bill.deliveries))
        view_published(engine, builder.lake, "published_figure_cost", "core/fct_figure_cost")
        yield builder.lake, engine, ExpectationsGate(engine)


@pytest.mark.slow
@pytest.mark.parametrize("model", STORED, ids=lambda model: model.key)
def test_both_ways_agree_on_a_table_as_built_and_as_damaged(warehouse: Warehouse, model: Model, tmp_path: Path) -> None:
    lake, engine, gate = warehouse
    contract, files = load_contract(model.key), lake.files(model.key)
    failed = agreed_failures(engine, gate, model.name, contract)
    try:
        failed |= damaged_failures(engine, gate, model.name, contract, pl.read_parquet(files), tmp_path)
    finally:
        # Checks of other tables read this one.
        engine.view(model.name, files)
    named = {check.name for check in contract.checks if check.kind != "columns"}
    assert named - failed == UNBROKEN.get(model.name, set())


TYPES = {
    **{"label": "VARCHAR", "flag": "BOOLEAN", "whole": "BIGINT", "real": "DOUBLE", "cost_usd": "DECIMAL(38,10)"},
    **{"cost_ratio": "DECIMAL(20,10)", "day": "DATE", "moment": "TIMESTAMP"},
}
EDGES = r"""
grain: one row per edge
key: [label, real]
columns: {columns}
error:
  not_null: [flag, day]
  not_negative: [whole, real, cost_usd]
  in_set:
    label: ["it's", "a:b", ":a", "100%", "%s", "{{x}}", "", "null", "é", 'back\slash', '"', "?", "\0"]
    flag: [true]
    whole: [1, -5, 9007199254740993]
    real: [0.1, 1.0e-7, -2, .inf]
    cost_usd: [0.1, 0.3, 5]
    day: [2026-07-01]
    moment: [2026-07-01 10:00:00, 2026-07-01 10:00:00.000001]
  between:
    whole: [-1, 9007199254740993]
    real: [0.1, 0.3]
    cost_usd: [0.1, 1.0e+15]
    cost_ratio: [null, 0.7]
    day: [2026-07-01, null]
    moment: [2026-07-01 10:00:00.000001, 2026-07-02 00:00:00]
warn:
  between: {{real: [-.inf, .inf]}}
  rows:
    braces_and_colons: >-
      select label, {{{{'a': 1, 'b': whole}}}} as pair from {{batch}}
      where label[:1] in (':', '%', '?') or label like 'a:b%'
    a_cast: >-
      select label::varchar as label, '\:x' as escaped from {{batch}}
      where real::varchar = '-0.0' or whole is null
    some_row_is_missing: "select 1 as missing where not exists (from {{batch}})"
"""


def test_both_ways_agree_at_the_edges_of_every_type(tmp_path: Path) -> None:
    columns = ", ".join(f"{name}: {{type: '{type_}', meaning: An edge.}}" for name, type_ in TYPES.items())
    (tmp_path / "marts").mkdir()
    (tmp_path / "columns").mkdir()
    (tmp_path / "columns" / "run.yml").write_text("{}")
    (tmp_path / "marts" / "mart_edge.yml").write_text(EDGES.format(columns=f"{{{columns}}}"), encoding="utf-8")
    contract = load_contract("marts/mart_edge", tmp_path)
    with DuckDBEngine() as engine:
        casts = ", ".join(f'null::{type_} as "{name}"' for name, type_ in TYPES.items())
        engine.write(f"select {casts} limit 0", tmp_path / "none.parquet")
        good = pl.read_parquet(tmp_path / "none.parquet")
        failed = damaged_failures(engine, ExpectationsGate(engine), "mart_edge", contract, good, tmp_path)
    assert failed == {check.name for check in contract.checks if check.kind != "columns"}


def damaged_failures(
    engine: DuckDBEngine, gate: ExpectationsGate, table: str, contract: Contract, good: pl.DataFrame, folder: Path
) -> set[str]:
    """The names of the checks that fail on the table as damaged in any way; both ways agree on each."""
    failed = set()
    for damage, rows in damaged(contract, good):
        rows.write_parquet(folder / f"{damage}.parquet")
        engine.view(table, [folder / f"{damage}.parquet"])
        failed |= agreed_failures(engine, gate, table, contract)
    return failed


def agreed_failures(engine: DuckDBEngine, gate: ExpectationsGate, table: str, contract: Contract) -> set[str]:
    """The names of the checks that fail; both ways agree on them."""
    checks = [check for check in contract.checks if check.kind != "columns"]
    shown = contract.key or tuple(column.name for column in contract.columns)
    # The product's gate compares verdicts and counts, and is compared itself.
    results = {result.check: result for result in validate(engine, table, contract, ALL, gate=gate)[0]}
    everything = {
        **{"result_format": "COMPLETE", "unexpected_index_column_names": list(shown)},
        "partial_unexpected_count": ALL,
    }
    with pytest.MonkeyPatch.context() as patch:
        # The original fetches rows too.
        original = gates.great_expectations().expectations.UnexpectedRowsExpectation
        patch.setattr(gates, "_failing_rows_expectation", lambda: original)
        outcomes = gate.outcomes(table, checks, everything)
    for check in checks:
        ours, theirs = results[check.name], outcomes[check.name]
        is_fetched = "observed_value" in theirs.result
        if is_fetched:
            count, rows = theirs.result["observed_value"], theirs.result["details"]["unexpected_rows"]
        else:
            count, rows = theirs.result["unexpected_count"] or 0, theirs.result.get("unexpected_index_list") or []
        assert (ours.passed, ours.unexpected_count) == (theirs.success, count), check
        # A query for a column shows no key.
        sample = ours.sample if is_query(check) or not is_fetched else [only(row, check.columns) for row in ours.sample]
        found, fetched = counted(sample), counted(rows)
        assert found == fetched or (is_fetched and count > FETCHED == len(rows) and fetched <= found), check
        if check.kind == "unique":
            assert found == counted(repeated(engine, table, check.columns)), check
    return {check.name for check in checks if not results[check.name].passed}


def repeated(engine: DuckDBEngine, table: str, key: Sequence[str]) -> list[dict[str, Any]]:
    """Keys that stand in several rows, found without hashes."""
    names = ", ".join(f'"{name}"' for name in key)
    return engine.rows(f'select {names}, count(*) as row_count from "{table}" group by {names} having count(*) > 1')


def only(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in columns}


def counted(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How often there is each of these rows, in whichever order."""
    return Counter(json.dumps({name: as_text(value) for name, value in row.items()}, sort_keys=True) for row in rows)


def as_text(value: Any) -> str:
    """A value as results have it."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    # Sorted rows have 0.0 for -0.0.
    return str(value + 0.0 if isinstance(value, float) else value)
