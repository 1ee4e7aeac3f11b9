"""What Dagster gets: every table an asset with its checks, one job, one schedule."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lazily import Lazily

from pipelines.config.settings import Schedule, Settings
from pipelines.models.catalog import (
    BILLS,
    COMMITMENTS,
    INVOICES,
    OFFERS,
    PROOF_TABLES,
    RAW_TABLES,
    RESERVATIONS,
    SERVING_TABLES,
    SESSION_TABLES,
    load_catalog,
)
from pipelines.models.contract import load_contract

dg, definitions = Lazily("dagster"), Lazily("pipelines.definitions")

KEYS = Path(__file__).with_name("asset_keys.txt")
MODELS = load_catalog().ordered


@pytest.fixture(scope="module")
def graph():
    return definitions.defs.resolve_asset_graph()


def test_the_definitions_hold_together() -> None:
    dg.Definitions.validate_loadable(definitions.defs)


def test_asset_keys_are_the_ones_known(graph) -> None:
    keys = sorted(key.to_user_string() for key in graph.get_all_asset_keys())
    # Keys are public: others build on them. A new table is one more line in the file.
    assert keys == KEYS.read_text().split()


def test_every_table_is_an_asset(graph) -> None:
    given = (*RAW_TABLES, *SERVING_TABLES, RESERVATIONS, COMMITMENTS, INVOICES, OFFERS, *PROOF_TABLES, *BILLS)
    tables = {model.key for model in MODELS} | {f"raw/{name}" for name in given}
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == tables | {"publication"}


def test_every_asset_states_what_it_is_and_whose(graph) -> None:
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description and node.description.endswith("."), key
        assert node.owners and all(owner.startswith("team:") for owner in node.owners), key
        assert node.kinds, key
        # Months are built side by side.
        assert node.pools == (set() if node.is_partitioned else {"warehouse"}), key


def test_groups_are_layers_and_subjects(graph) -> None:
    groups = {key.to_user_string(): graph.get(key).group_name for key in graph.get_all_asset_keys()}
    assert groups["raw/aws_cur_line_item"] == "raw"
    assert groups["staging/stg_aws__line_item"] == "staging_aws"
    assert groups["core/fct_ledger"] == "core_charge"
    assert groups["core/fct_run_interval"] == "core_run"
    assert groups["marts/mart_run_cost"] == "marts_training"
    assert groups["detail/detail_cost_anomaly"] == "detail"
    assert "default" not in groups.values()


def test_owners_are_those_of_the_configuration() -> None:
    owners = {"ml-finops": "finance", "ml-platform": "ana@acme.dev"}
    graph = definitions.assemble(Settings(owners=owners)).resolve_asset_graph()
    assert graph.get(dg.AssetKey(["marts", "mart_run_cost"])).owners == ["team:finance"]
    assert graph.get(dg.AssetKey(["raw", "tracker_run"])).owners == ["ana@acme.dev"]


def test_columns_and_where_they_come_from_are_metadata(graph) -> None:
    metadata = graph.get(dg.AssetKey(["marts", "mart_run_waste"])).metadata
    contract = load_contract("marts/mart_run_waste")
    schema, lineage = metadata["dagster/column_schema"], metadata["dagster/column_lineage"]
    assert [(column.name, column.type) for column in schema.columns] == [(c.name, c.type) for c in contract.columns]
    # `run.workload_id` of its last SELECT, where `run` is fct_run.
    assert lineage.deps_by_column["workload_id"] == [dg.TableColumnDep(dg.AssetKey(["core", "fct_run"]), "workload_id")]
    assert "cost_ratio" not in lineage.deps_by_column


def test_users_see_when_the_marts_are_late(graph) -> None:
    fresh = {key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).freshness_policy}
    assert fresh == {model.key for model in load_catalog().public} | {"publication"}


def test_assets_rest_on_what_their_models_read(graph) -> None:
    for model in MODELS:
        above = {key.path[-1] for key in graph.get(dg.AssetKey(model.key.split("/"))).parent_keys}
        assert above == set(model.inputs) - SESSION_TABLES, model.key
    marts = {model.name for model in load_catalog().public}
    assert {key.path[-1] for key in graph.get(dg.AssetKey("publication")).parent_keys} == marts


def test_what_is_replaced_by_month_has_months_as_partitions(graph) -> None:
    monthly = {model.key for model in MODELS if model.grain != "whole"} | {f"raw/{name}" for name in BILLS}
    partitioned = {key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).is_partitioned}
    assert partitioned == monthly


@pytest.mark.parametrize("model", [model for model in MODELS if model.stored], ids=lambda model: model.key)
def test_every_expectation_is_a_check_and_errors_block(graph, model) -> None:
    key = dg.AssetKey(model.key.split("/"))
    specs = {spec.name: spec for spec in (graph.get_check_spec(k) for k in graph.get(key).check_keys)}
    contract = load_contract(model.key)
    names = {"error": "contract", "warn": "contract_warnings"}
    severities = {check.severity for check in contract.checks}
    assert {name: spec.blocking for name, spec in specs.items()} == {names[s]: s == "error" for s in severities}
    assert all(f"- {check.title}" in specs[names[check.severity]].description for check in contract.checks)


def test_both_severities_are_in_use() -> None:
    severities = {check.severity for model in MODELS for check in load_contract(model.key).checks}
    assert severities == {"error", "warn"}


def test_the_schedule_is_the_configured_one_and_on() -> None:
    schedule = definitions.assemble(Settings(schedule=Schedule(cron="0 3 * * *"))).resolve_schedule_def("daily_refresh")
    assert schedule.cron_schedule == "0 3 * * *"
    assert schedule.execution_timezone == "UTC"
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
    assert schedule.job.name == "refresh"
