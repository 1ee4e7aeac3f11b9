"""Contracts: what a file in expectations/ may hold, and the error when it holds something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from quality_data import COLUMNS

from pipelines.base.errors import UsageError
from pipelines.models.contract import Contract, contract_paths, load_columns, load_contract

# The contract of style.md section 5, with the columns above.
PLAIN = """
grain: one row per run
key: [run_id]
columns: [run_id, effective_cost_usd, saving_ratio]
error: {not_null: [run_id, effective_cost_usd], not_negative: [effective_cost_usd]}
warn: {between: {saving_ratio: [0.01, 50000]}}
"""


def contract(folder: Path, text: str, columns: str = COLUMNS) -> Contract:
    (folder / "marts").mkdir(exist_ok=True)
    (folder / "columns").mkdir(exist_ok=True)
    (folder / "columns" / "run.yml").write_text(columns, encoding="utf-8")
    (folder / "marts" / "mart_run.yml").write_text(text, encoding="utf-8")
    return load_contract("marts/mart_run", folder)


def refusal(folder: Path, text: str, columns: str = COLUMNS) -> str:
    with pytest.raises(UsageError) as refused:
        contract(folder, text, columns)
    message = str(refused.value)
    assert message.startswith(str(folder))
    return message.removeprefix(f"{folder}/")


def test_a_plain_contract_gets_key_and_column_checks_it_did_not_write(tmp_path: Path) -> None:
    plain = contract(tmp_path, PLAIN)
    assert plain.key == ("run_id",)
    assert plain.description == "One row per run."
    assert [(check.name, check.severity) for check in plain.checks] == [
        ("columns_as_typed", "error"),
        ("key_unique", "error"),
        ("run_id_not_null", "error"),
        ("effective_cost_usd_not_null", "error"),
        ("effective_cost_usd_not_negative", "error"),
        ("saving_ratio_between", "warn"),
    ]
    assert plain.checks[-1].title == "saving_ratio lies between 0.01 and 50000"


def test_a_column_has_its_shared_meaning_unless_the_table_states_otherwise(tmp_path: Path) -> None:
    made = contract(
        tmp_path,
        """
grain: one row per run
key: [run_id]
columns:
  run_id:
  saving_ratio: {meaning: Saved share of the cheapest run.}
  noise_ratio: {type: DOUBLE, unit: ratio, meaning: Local to this table.}
""",
    )
    described = {column.name: (column.type, column.unit, column.meaning) for column in made.columns}
    assert described == {
        "run_id": ("VARCHAR", None, "Name of the run."),
        "saving_ratio": ("DOUBLE", "ratio", "Saved share of the cheapest run."),
        "noise_ratio": ("DOUBLE", "ratio", "Local to this table."),
    }


def test_a_table_without_a_key_has_no_key_checks(tmp_path: Path) -> None:
    made = contract(tmp_path, "grain: one row per heap\nkey: []\ncolumns: [bucket]")
    assert [check.name for check in made.checks] == ["columns_as_typed"]


def test_a_warning_narrower_than_its_error_has_a_name_of_its_own(tmp_path: Path) -> None:
    made = contract(
        tmp_path,
        PLAIN.replace("not_negative: [effective_cost_usd]", "between: {saving_ratio: [-10, 1000000]}"),
    )
    assert [check.name for check in made.checks][-2:] == ["saving_ratio_between", "saving_ratio_between_warn"]


def test_row_checks_list_which_other_tables_they_read(tmp_path: Path) -> None:
    made = contract(
        tmp_path,
        """
grain: one row per run
key: [run_id]
columns: [run_id, effective_cost_usd]
warn:
  rows:
    above_the_ledger: >-
      with ledger as (select run_id, sum(usd) as usd from fct_ledger group by 1)
      select batch.run_id from {batch} as batch join ledger using (run_id) join dim_run using (run_id)
      where effective_cost_usd > usd;
""",
    )
    assert made.reads == ("dim_run", "fct_ledger")
    assert made.checks[-1].title == "above the ledger"
    assert made.checks[-1].severity == "warn"


def test_the_digest_follows_types_and_checks_but_not_wording(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("plain", "wording", "check", "type")]
    for folder in folders:
        folder.mkdir()
    plain = contract(folders[0], PLAIN).digest
    assert plain == contract(folders[1], PLAIN, COLUMNS.replace("What it cost", "Its cost")).digest
    assert plain != contract(folders[2], PLAIN.replace("0.01", "0.02")).digest
    assert plain != contract(folders[3], PLAIN, COLUMNS.replace("DECIMAL(38,10)", "DECIMAL(20,10)")).digest


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("warn:", "warning:", "marts/mart_run.yml: warning: Extra inputs are not permitted"),
        ("not_null:", "never_null:", "marts/mart_run.yml: error.never_null: Extra inputs are not permitted"),
        ("key: [run_id]", "key: [id]", "marts/mart_run.yml: error.unique names id"),
        ("key: [run_id]", "", "marts/mart_run.yml: key: Field required"),
        ("grain: one row per run", "", "marts/mart_run.yml: grain: Field required"),
        ("saving_ratio]\n", "saving_rate]\n", "marts/mart_run.yml: saving_rate.type: Field required"),
        ("not_negative: [effective_cost_usd]", "not_negative: [cost]", "error.not_negative names cost"),
        (
            "not_null: [run_id,",
            "not_null: [saving_ratio, saving_ratio,",
            "the check saving_ratio_not_null twice",
        ),
        (
            "not_null: [run_id, effective_cost_usd]",
            "not_null: run_id",
            "error.not_null: Input should be a valid list",
        ),
        ("[0.01, 50000]", "[0.01]", "warn.between.saving_ratio.1: Field required"),
        ("[0.01, 50000]", "[low, high]", "warn.between.saving_ratio has 'low', which is not a DOUBLE"),
        ("{saving_ratio: [0.01, 50000]}", "[saving_ratio]", "warn.between: Input should be a valid dictionary"),
        ("{saving_ratio: [0.01, 50000]}", "{run_id: [1, 2]}", "between.run_id has 1, which is not a VARCHAR"),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "in_set: {run_id: [no]}",
            "has False, which is not a VARCHAR",
        ),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "in_set: {run_id: []}",
            "warn.in_set.run_id: List should",
        ),
        ("between: {saving_ratio: [0.01, 50000]}", "in_set: {run_id: [null]}", "has None, which is not a VARCHAR"),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "rows: {A b: 'select 1 from {batch}'}",
            "String should match pattern",
        ),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "rows: {idle: 'select 1 from t'}",
            "does not read {batch}",
        ),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "rows: {idle: {shows: 'select 1 from {batch}'}}",
            "warn.rows.idle.fails: Field required",
        ),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "rows: {idle: {fails: 'select 1 from {batch}', shows: 'select 1 from t'}}",
            "does not read {batch}",
        ),
        (
            "between: {saving_ratio: [0.01, 50000]}",
            "rows: {idle: 'select } {batch}'}",
            "does not read {batch}",
        ),
        (
            "warn: {between: {saving_ratio: [0.01, 50000]}}",
            "warn: [between]",
            "warn: Input should be a valid dictionary",
        ),
        (
            "error:",
            "key: [run_id]\nerror:",
            "line 5 is not YAML as we write it: the key key is written a second",
        ),
        ("[run_id]", "[run_id", "is not YAML as we write it"),
    ],
)
def test_a_wrong_contract_is_refused_naming_file_and_key(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert was in PLAIN
    assert message in refusal(tmp_path, PLAIN.replace(was, becomes, 1))


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("type: DOUBLE", "type: FLOAT", "columns/run.yml: saving_ratio.type: String should match pattern"),
        ("type: DOUBLE, ", "", "columns/run.yml: saving_ratio.type: Field required"),
        (
            "meaning: Saved share.",
            "meaning: ''",
            "columns/run.yml: saving_ratio.meaning: String",
        ),
        ("unit: ratio", "units: ratio", "columns/run.yml: saving_ratio.units: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_column_is_refused_naming_it(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert refusal(tmp_path, PLAIN, COLUMNS.replace(was, becomes, 1)).startswith(message)


def test_a_table_without_a_contract_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"marts/mart_unknown has no contract; write .*mart_unknown\.yml"):
        load_contract("marts/mart_unknown", tmp_path)


def test_every_contract_of_the_house_can_be_read() -> None:
    load_columns()
    for table in contract_paths():
        load_contract(table)


def test_the_figures_of_a_check_have_one_order() -> None:
    """Every engine shows rows that are equal by a part of the key in an order of its own."""
    found = [(load_contract(table).key, check) for table in contract_paths() for check in load_contract(table).checks]
    orders = [({*key}, check.shows.rpartition(" order by ")[2]) for key, check in found if check.shows]
    assert orders
    for key, order in orders:
        assert key <= {name.split()[0] for name in order.split(", ")}
