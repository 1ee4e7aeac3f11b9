"""Every question of docs/queries.md has an answer in the demo's publication."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.ledgers import build_warehouse

from pipelines.commands import open_marts, published_of
from pipelines.demo import DemoData
from pipelines.engine import Engine
from pipelines.settings import load_settings
from pipelines.warehouse import Warehouse

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "queries.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^### \d+\. (.+?)\n+```sql\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def marts(root: Path, demo: DemoData) -> Iterator[Engine]:
    build_warehouse(root / "trainledger.toml")
    warehouse = Warehouse(load_settings(root / "trainledger.toml"))
    with open_marts(warehouse, published_of(warehouse)) as engine:
        yield engine


def test_the_page_asks_ten_questions() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered(marts: Engine, question: str) -> None:
    answer = marts.query(QUESTIONS[question])
    assert answer.height > 0
    # A column nobody can fill would be a question badly put.
    assert [name for name in answer.columns if answer[name].null_count() == answer.height] == []


def test_the_ledger_answers_with_the_whole_bill(marts: Engine) -> None:
    """Question 4 leaves no dollar out: its sums are those of the invoices in question 5."""
    asked = {question.partition(",")[0]: marts.query(text) for question, text in QUESTIONS.items()}
    billed = pl.col("billed_cost_usd").sum()
    ledger = asked["Where did the dollars of a month go"].group_by("billing_month").agg(billed)
    invoices = asked["Does the ledger tie to the invoices?"].group_by("billing_month").agg(billed)
    both = ledger.join(invoices, on="billing_month", suffix="_invoiced")
    assert both.height == ledger.height > 1
    assert both["billed_cost_usd"].to_list() == both["billed_cost_usd_invoiced"].to_list()
