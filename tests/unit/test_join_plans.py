"""How the engine joins: a plan that compares each row of one table with each of another grows with both."""

from __future__ import annotations

import json
from typing import Any

from support.small_company import JULY, Company

from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.checks import is_query, query_counts
from pipelines.models.contract import load_contract
from pipelines.models.warehouse import Warehouse

# Joins whose one side is a short list or a single row.
SHORT = {
    "detail_budget_monthly": 2,  # budgets
    "detail_commitment_coverage_hourly": 1,  # commitment kinds
    "detail_commitment_use_hourly": 1,  # the policy
    "detail_serving_capacity_hourly": 1,  # the newest hour of the bill
    "fct_capacity_block_piece": 1,  # the newest day of the bill
    "fct_term_spend_monthly": 1,  # months
    "mart_cost_summary_monthly": 2,  # a count
    "mart_team_cost_monthly": 1,  # a count
    "stg_aws__bedrock_meter": 2,  # words and units of meters
    "stg_aws__billed_stretch": 1,  # hours of a day
}


def test_tables_and_checks_are_joined_by_key(built_company: Company) -> None:
    """DuckDB runs a join as nested loops whose condition has an `or`, or, in an outer, anti or semi join, a part that
    looks at the left side alone: that part belongs into the key, as `case when … then key end`."""
    builder = Builder(Warehouse(load_settings(built_company.config)))
    found = {}
    for model in builder.catalog.ordered:
        contract = load_contract(model.key)
        checks = [query_counts([check], model.name, False) for check in contract.checks if is_query(check)]
        selects = [*([model.text] if model.kind == "sql" else []), *checks]
        with builder.open([*model.inputs, *contract.reads, model.name], JULY) as engine:
            # An empty side would hide the join.
            engine.connection.execute("set disabled_optimizers = 'empty_result_pullup'")
            plans = [engine.query(f"explain (format json) {select}")["explain_value"][-1] for select in selects]
        loops = sum(nested_loops(step) for plan in plans for step in json.loads(plan))
        if loops:
            found[model.name] = loops
    assert found == SHORT


def nested_loops(step: dict[str, Any]) -> int:
    """How many joins of a plan have no key."""
    return (step["name"].strip() == "BLOCKWISE_NL_JOIN") + sum(nested_loops(one) for one in step["children"])
