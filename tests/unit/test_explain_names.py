"""`explain NAME`: every metric, column and table can be looked up, and fits a terminal."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commands import run_command

from pipelines.base import resources
from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.explain.names import look_up, show_name
from pipelines.explain.terminal import Label, grid
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.expressions import load_expressions
from pipelines.present.buckets import BUCKETS

TABLES = load_catalog().ordered
COLUMNS = sorted({column.name for model in TABLES for column in load_contract(model.key).columns})


def test_every_name_of_the_house_is_explained() -> None:
    unexplained = []
    for name in [*load_expressions(), *COLUMNS, *(model.name for model in TABLES)]:
        found = look_up(name)
        assert json.loads(json.dumps(asdict(found)))["name"] == found.name
        if not found.meaning or not (found.made or found.columns or found.facts.get("used by")):
            unexplained.append(name)
    assert unexplained == []


def test_a_metric_shows_formula_unit_inputs_and_users() -> None:
    found = look_up("cost_per_epoch_usd")
    # sql/metrics/cost_per_epoch_usd.sql and the mart that calls it, as they are written.
    assert found.is_a == "a metric"
    assert found.formula == "usd_per(known_sum(if_whole(cost, unbilled_hours > 0)), known_sum(epoch_completed_count))"
    assert found.unit == "usd/epoch"
    assert found.facts["made from"] == "cost, epoch_completed_count, unbilled_hours"
    assert "marts/mart_run_cost" in found.facts["used by"]
    assert (
        "cost_per_epoch_usd(if_whole(list_cost_usd, shares_epochs)) as list_cost_per_epoch_usd"
        in found.made["marts/mart_run_cost"]
    )


def test_a_term_has_the_meaning_of_the_glossary() -> None:
    """docs/glossary.md, the rows `effective`, `baseline, candidate` and `verdict`; the last is a column too."""
    assert look_up("effective").meaning.startswith("cost basis: what use costs net of discounts")
    assert look_up("candidate").meaning.startswith("what a comparison compares")
    assert look_up("verdict").facts["glossary"].startswith("what a comparison proves")


@pytest.mark.parametrize(
    "term",
    ["goodput", "waste", "stranded", "regret", "crossover", "seal", "replay", "durable", "back-test", "at stake",
     "payer", "Savings Plan", "effective savings rate", "imds", "tag_only"],
)  # fmt: skip
def test_what_reports_use_without_a_column_is_a_term(term: str) -> None:
    assert look_up(term).is_a == "a term"


def test_a_phrase_is_found_without_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_command(capsys, "explain", "effective", "savings", "rate", "--json")
    assert result.code == 0, result.error
    assert json.loads(result.out)["name"] == "effective savings rate"


def test_a_table_may_be_called_by_its_schema() -> None:
    found = look_up("mart.mart_run_cost")
    assert (found.name, found.facts["key"], found.facts["made from"]) == (
        "marts/mart_run_cost",
        "run_id",
        "fct_checkpoint_retention, fct_ledger_piece, stg_tracker__attempt, fct_run, detail_run_job",
    )


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("cost_per_epok", "cost_per_epoch_usd"),
        ("mart_run_costs", "mart_run_cost"),
        ("EFFECTIVE_COST", "effective_cost"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(
        UsageError, match=f"No metric, column, table or term is called '{name}'.*did you mean.* {nearest}"
    ):
        look_up(name)


def test_a_page_keeps_to_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "width", 80)
    show_name(look_up("mart_run_cost"), Console())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 40
    assert max(map(len, lines)) <= 80


WORDS = st.text("abc-/", max_size=60)


@given(st.lists(st.tuples(WORDS, WORDS, st.decimals(-1e9, 1e9, places=2).map(str)), min_size=1, max_size=8))
@settings(deadline=None, derandomize=True, database=None)
def test_a_grid_fits_its_width_and_never_cuts_an_amount(rows: list[tuple[str, str, str]]) -> None:
    # Two cut names of 8 (the longest head), an amount and two gaps always have room in 40 characters.
    lines = grid(("resource", "service", "usd"), rows, numbers=1, width=40)
    assert all(len(line) <= 40 for line in lines)
    assert all(line.endswith(amount) for line, (_, _, amount) in zip(lines[1:], rows, strict=True))


def test_a_grid_never_cuts_a_day_an_account_or_how_many_rows_it_sums() -> None:
    rows = [
        ("2026-07-03", "arn:aws:ec2:us-west-2:1:thing/a", "1.00"),
        (Label("all 14,482 pieces of 14,426"), "", "2.00"),
    ]
    # The label is 27 wide, the day 10: the name keeps the 15 that are left.
    assert grid(("day", "resource", "usd"), rows, numbers=1, width=24) == [
        "day         resource          usd",
        "2026-07-03  arn:…:1:thing/a  1.00",
        "all 14,482 pieces of 14,426  2.00",
    ]


def test_every_bucket_of_the_ledger_is_explained_in_a_line() -> None:
    (held,) = [check for check in load_contract("core/fct_ledger_piece").checks if check.columns == ("bucket",)]
    assert set(BUCKETS) == set(held.values)
    assert look_up("idle").meaning.endswith(f"{BUCKETS['idle']}.")


def test_every_rule_of_effective_cost_is_explained_in_words() -> None:
    words = (resources.SQL / "functions" / "cost_rule_meaning.sql").read_text(encoding="utf-8")
    explained = set(re.findall(r"when '(\w+)' then '\w", words))
    with (resources.REFERENCE / "ref_line_item_type.csv").open(encoding="utf-8", newline="") as file:
        listed = {row["effective_rule"] for row in csv.DictReader(file)}
    # Also what staging gives to a type that is in no list, and what the functions decide by.
    sql = "\n".join(
        path.read_text() for path in [*resources.SQL.glob("functions/*.sql"), *resources.SQL.rglob("staging/**/*.sql")]
    )
    tested = set(re.findall(r"effective_rule = '(\w+)'", sql))
    for several in re.findall(r"effective_rule in \(([^)]+)\)", sql):
        tested |= set(re.findall(r"'(\w+)'", several))
    assert tested
    assert (listed | tested | {"as_billed", "block_fee"}) - explained == set()
