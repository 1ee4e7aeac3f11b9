"""Every question of docs/queries.md has an answer in the demo, and its savings proof shows what its marts hold."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from support.ledgers import build_warehouse
from support.report_marts import charts_drawn_once
from typer.testing import CliRunner

from pipelines.base.errors import EngineError, UsageError
from pipelines.cli import app
from pipelines.dashboard.pages import render
from pipelines.dashboard.reader import Reader
from pipelines.engine import Engine
from pipelines.models.marts import open_marts, readable
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.render import report_page
from pipelines.warehouse.publication import Publication

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "queries.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^### \d+\. (.+?)\n+```sql\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def config(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's configuration, in a folder of its own."""
    return shutil.copytree(root, tmp_path_factory.mktemp("queries") / "demo") / "trainledger.toml"


@pytest.fixture(scope="module")
def warehouse(config: Path) -> Warehouse:
    """The demo, built."""
    return build_warehouse(config).warehouse


@pytest.fixture(scope="module")
def published(warehouse: Warehouse) -> Publication:
    return published_of(warehouse)


@pytest.fixture(scope="module")
def marts(warehouse: Warehouse, published: Publication) -> Iterator[Engine]:
    with open_marts(warehouse, published) as engine:
        yield engine


@pytest.fixture(scope="module")
def proof(marts: Engine, published: Publication) -> str:
    """The savings proof of the newest month."""
    return proof_of(marts, published)


def proof_of(marts: Engine, published: Publication, month: str | None = None) -> str:
    with charts_drawn_once():
        return report_page(marts.query, published, "savings", month)


@pytest.fixture(scope="module")
def remembered(marts: Engine) -> Callable[[str], pl.DataFrame]:
    return cache(marts.query)


def test_the_page_asks_ten_questions() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered(marts: Engine, question: str) -> None:
    answer = marts.query(QUESTIONS[question])
    assert answer.height > 0
    # A column that is always null would be a question badly put.
    assert [name for name in answer.columns if answer[name].null_count() == answer.height] == []


def test_the_ledger_answers_with_the_whole_bill(marts: Engine) -> None:
    """Question 4 leaves no dollar out: its sums are those of the invoices in question 5."""
    answers = {question.partition(",")[0]: marts.query(text) for question, text in QUESTIONS.items()}
    billed = pl.col("billed_cost_usd").sum()
    ledger = answers["Where did the dollars of a month go"].group_by("billing_month").agg(billed)
    invoices = answers["Does the ledger tie to the bill"].group_by("billing_month").agg(billed)
    both = ledger.join(invoices, on="billing_month", suffix="_invoiced")
    assert both.height == ledger.height > 1
    assert both["billed_cost_usd"].to_list() == both["billed_cost_usd_invoiced"].to_list()


def test_the_chart_of_days_has_no_fee_of_a_whole_month(warehouse: Warehouse) -> None:
    """A third of a reservation is unused, and stands on the day of its fee: the table has it, the chart does not."""
    page = render(Reader(warehouse), "ledger", {"month": "2026-07"})
    (drawn,) = (part for part in re.findall(r"<figure>.*?</figure>", page, re.DOTALL) if " a day of July 2026" in part)
    assert "Not drawn: unused commitments, whose fees may be of the whole month" in drawn
    assert "Capacity unused" in drawn and "Commitment unused" not in drawn
    assert "Commitment unused" in page.partition('id="ledger-days"')[2]


@pytest.mark.parametrize(("team", "other", "least"), [("nlp", "vision", 14), ("vision", "nlp", 10)])
def test_a_reader_of_a_team_sees_nothing_of_another(
    marts: Engine, warehouse: Warehouse, published: Publication, team: str, other: str, least: int
) -> None:
    """No cell of any table names a run, an owner or a team of the other; `least` tables have rows of its own."""
    names = marts.query(f"select run_id, owner, team from mart_run_cost where team = '{other}'")
    hidden = {*names["run_id"], *names["owner"], *names["team"]}
    with_rows = 0
    with open_marts(warehouse, published, (team,)) as seen:
        for table in readable(published.tables, (team,)):
            rows = seen.query(f"from {table}")
            assert {value for row in rows.iter_rows() for value in row if isinstance(value, str)} & hidden == set(), (
                table
            )
            with_rows += rows.height > 0
    assert with_rows >= least


def words(page: str) -> str:
    """A page as a reader has it: without markup and line ends."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.partition("</style>")[2])).split())


def test_the_savings_proof_states_what_was_avoided(marts: Engine, published: Publication) -> None:
    """Two runs of July against the two of June: as many, and a p5.48xlarge costs the same in both months."""
    usd = dict(marts.query("select run_id, cost_to_target_usd from mart_run_cost").iter_rows())
    avoided = sum(usd[f"llama8b-p5-{run}"] for run in (1, 2)) - sum(usd[f"llama8b-trn1-{run}"] for run in (3, 4))
    page = words(proof_of(marts, published, "2026-07"))
    # The comparison is inconclusive, so the saving is shown and not quoted.
    assert "What did it save in July 2026? None claimed" in page
    assert "measured baseline llama8b, version 1, runs of 3 Jun 2026 to 11 Jun 2026" in page
    assert ": 2 independent runs; an interval needs 3" in page
    assert f" ${avoided:,.0f} none $" in page
    assert "registered as llama8b-2026 on 2 June 2026" in page
    # 12 days at 900 USD, and the two validation runs as the bill has them.
    spike = marts.query("select sum(effective_cost_usd) from mart_run_cost where run_id like 'llama8b-trn1-_' "
                        "and run_id <= 'llama8b-trn1-2'").item()  # fmt: skip
    assert f"llama8b to trn1 llama-3.1-8b; saving measured ${12 * 900 + spike:,.0f}" in page


def test_a_verdict_on_page_one_is_that_of_the_mart(marts: Engine, proof: str) -> None:
    page = words(proof)
    pairs = marts.query("select * from mart_silicon_comparison where cost_basis = 'effective'")
    assert pairs.height == 4
    shown = 0
    for pair in pairs.iter_rows(named=True):
        low, high = (
            f"{100 * pair[end]:,.1f}%".replace("-", "\u2212") for end in ("saving_low_ratio", "saving_high_ratio")
        )
        shown += f"95% interval of the saving {low} to {high}: {pair['verdict']} ." in page
        assert pair["verdict_reason"].replace(" -", " \u2212") in page
    # The others follow below.
    assert shown == 3


def test_serving_is_decided_by_what_it_costs(marts: Engine, proof: str) -> None:
    """List prices times 730: embeddings at 0.7582 on inf2.xlarge, 553.486 a month, and at 0.8048 on g6.xlarge, 587.504,
    which costs 0.8048 / 0.7582 - 1 = 6.1 % more on every day. A closed model stays; the assistant's mix of
    7.6 to 2.5 costs (7.6 x 0.15 + 2.5 x 0.60) / 10.1 = 0.2614 a million.
    """
    ways = marts.query("select * from mart_serving_comparison").rows_by_key("model", named=True, unique=True)
    embed, assistant = ways["e5-embed"], ways["qwen3-32b"]
    costs = [float(embed[f"{side}_cost_per_month_usd"]) for side in ("baseline", "candidate")]
    assert costs == [pytest.approx(553.486), pytest.approx(587.504)]
    assert embed["saving_ratio"] == pytest.approx(1 - 0.8048 / 0.7582)
    assert (embed["verdict"], assistant["verdict"]) == ("stay", "managed")
    assert float(assistant["blended_price_usd"]) == pytest.approx(0.2614, abs=0.0001)
    chosen = marts.query("select workload_id, recommendation from mart_portfolio where activity = 'serving'")
    assert dict(chosen.iter_rows()) == {
        "Claude Haiku 4.5": "bedrock", "Llama2-70B": "run a pilot", "e5-embed": "inferentia", "qwen3-32b": "bedrock",
    }  # fmt: skip
    page = words(proof)
    for way in ways.values():
        assert way["candidate_platform"] is None or f"{way['verdict']} {way['verdict_reason']}" in page
    assert "tokens a month; today’s traffic is" in page


def test_a_month_without_a_baseline_claims_nothing(marts: Engine, published: Publication) -> None:
    """The baseline was frozen on the last of June."""
    assert "What did it save in June 2026? None claimed" in words(proof_of(marts, published, "2026-06"))


def test_a_month_that_was_not_delivered_is_refused(marts: Engine, published: Publication) -> None:
    with pytest.raises(UsageError, match="2026-05 is not a delivered billing month; choose one of 2026-06, 2026-07"):
        report_page(marts.query, published, "savings", "2026-05")


def test_the_savings_proof_is_the_same_twice_and_makes_no_request(
    marts: Engine, published: Publication, proof: str
) -> None:
    assert proof == report_page(marts.query, published, "savings")
    assert set(re.findall(r"https?://[^\"' <]+", proof)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "<script" not in proof


@pytest.mark.parametrize(
    "mart", ["mart_silicon_comparison", "mart_savings_monthly", "mart_break_even", "detail_run_summary"]
)
def test_a_publication_without_a_mart_states_it(
    remembered: Callable[[str], pl.DataFrame], published: Publication, mart: str
) -> None:
    def query(sql: str) -> pl.DataFrame:
        if re.search(rf"\b{mart}\b", sql):
            raise EngineError(f"there is no {mart}")
        return remembered(sql)

    with charts_drawn_once():
        page = report_page(query, published, "savings")
    assert f"This publication has no {mart}" in words(page)


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("option", [[], ["--serving"]])
def test_a_comparison_fits_a_terminal(
    config: Path, width: int, option: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written to a terminal, of which colors are the sign; letters in bold take no room."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    result = CliRunner().invoke(app, ["compare", *option, "--config", str(config)], catch_exceptions=False)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.output).splitlines()
    assert any(line.startswith("Verdict:" if option else "Recommendation (effective basis):") for line in lines)
    assert [line for line in lines if len(line) > width] == []


def test_explain_prints_the_example_of_its_page(config: Path) -> None:
    """docs/reports.md shows parts of it; a terminal breaks the lines elsewhere."""
    page = (DOCS / "reports.md").read_text(encoding="utf-8")
    command, example = re.search(r"\$ trainledger (explain run .+)\n((?: {4}.*\n)+)", page).groups()
    result = CliRunner().invoke(app, [*command.split(), "--config", str(config)], catch_exceptions=False)
    output = " ".join(result.output.split())
    assert [part for part in example.split("…") if " ".join(part.split()) not in output] == []
