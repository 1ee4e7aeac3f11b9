"""`explain model`: from the cost of serving a model down to bill lines; figures derived in the story or here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from support.bills import bedrock_hour, write_config, write_events, write_export
from support.commands import run_command
from support.ledgers import publish_tables
from support.stories import build_story

from pipelines.base.errors import CheckError, UsageError
from pipelines.config.settings import load_settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.explain.lines import Explanation, behind
from pipelines.explain.serving import for_model
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of

TABLES = ("fct_ledger_line", "fct_ledger", "stg_aws__invoice_total", "mart_inference_cost_daily")
STORY = Path(__file__).parents[1] / "golden" / "trains_by_night_and_serves_by_day"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("servers")
    build_story(STORY, root, TABLES, publish_tables)
    return root / "trainledger.toml"


@contextmanager
def explanation(servers: Path) -> Iterator[Explanation]:
    warehouse = Warehouse(load_settings(servers))
    published = published_of(warehouse)
    with open_marts(warehouse, published) as marts:
        question = for_model(marts, "llama-3.1-8b", "2026-07", None)
    with behind(warehouse, published, question) as found:
        yield found


@pytest.fixture(scope="module")
def explained(servers: Path) -> Iterator[Explanation]:
    with explanation(servers) as found:
        yield found


def test_a_model_on_our_servers_is_explained_by_server_and_line(explained: Explanation) -> None:
    """`chat` (README): 41.28 while requests ran, 27.52 up without one, 5/11 of the 68.80 that nothing held:
    6.2545454545 + 25.0181818182 = 31.2727272727. `summary`: 6.88, and 20.64 / 5 = 4.128 of what nothing held."""
    explained.check()
    by_part = explained.level(explained.question.levels[1])
    assert by_part.select("served_by", "resource_id", "part", "effective_cost_usd").rows() == [
        ("chat", "i-0day", "serving", Decimal("41.28")),
        ("chat", "i-0day", "shared idle", Decimal("31.2727272727")),
        ("chat", "i-0day", "idle", Decimal("27.52")),
        ("summary", "i-0both", "serving", Decimal("6.88")),
        ("summary", "i-0both", "shared idle", Decimal("4.128")),
    ]
    # 100.0727272727 and 11.008, the loaded costs of the README.
    assert explained.total()["effective_cost_usd"] == Decimal("111.0807272727")
    # The hour from 07:00 costs 55.04, of which `chat` was up for 15 of 60 minutes with 8 GPUs: 900 s x 8 = 7200.
    line = explained.lines().row(by_predicate=pl.col("source_row") == 1, named=True)
    assert (line["line_effective_cost_usd"], line["effective_cost_usd"]) == (Decimal("55.04"), Decimal("13.76"))
    assert line["share_rule"] == "the server was up without a request: 7200 of 28800 accelerator-seconds"
    shared = explained.lines().filter(pl.col("part") == "shared idle")
    assert shared["share_rule"].to_list() == [
        "share of 68.80 of idle time that nothing held",
        "share of 20.64 of idle time that nothing held",
    ]


def test_a_figure_that_its_lines_do_not_come_to_is_an_error(explained: Explanation) -> None:
    rows = explained.question.rows.with_columns(pl.col("billed_cost_usd") + Decimal("0.0000000001"))
    wrong = replace(explained, question=replace(explained.question, rows=rows))
    # Two rows of the mart: 111.0807272727 and twice the added digit.
    with pytest.raises(CheckError, match=r"billed_cost_usd is 111\.0807272729, its bill lines sum to 111\.0807272727"):
        wrong.check()


def test_a_server_bears_no_more_idle_time_than_its_machine_had(servers: Path) -> None:
    with explanation(servers) as explained:
        explained._engine.view_sql("unheld", "select 'i-0day' as resource_id, 31.27 as effective_cost_usd")
        with pytest.raises(CheckError, match=r"shared idle time of chat is 31\.2727272727, .* comes to 31\.27 "):
            explained.check()


def test_a_mart_that_its_drill_downs_do_not_come_to_is_an_error() -> None:
    """The mart has 10 for the servers, their hours 9.99."""
    cost = "cast({0} as decimal(20, 10)) as list_cost_usd, cast({0} as decimal(20, 10)) as effective_cost_usd, "
    cost += "cast(10 as decimal(20, 10)) as billed_cost_usd"
    key = "'m' as model, date '2026-07-01' as billing_month, 'USD' as billing_currency"
    names = "'1' as payer_account_id, '2' as account_id, 'r' as region_id, null as tier, null as route, null as team"
    day = "date '2026-07-14' as usage_date"
    with DuckDBEngine() as marts:
        mart = f"select {key}, {names}, {day}, 'gpu' as platform, {cost.format('10')}"
        hour = f"select {key}, timestamp '2026-07-14 10:00:00' as hour_started_at, 'gpu' as platform"
        marts.view_sql("mart_inference_cost_daily", mart)
        marts.view_sql("detail_serving_capacity_hourly", f"{hour}, {cost.format('9.99')}")
        marts.view_sql("detail_bedrock_usage_daily", f"select {key}, {day}, 'idle' as bucket, {cost.format('1')}")
        apart = for_model(marts, "m", None, None).apart
    assert [(name.removeprefix("mart_inference_cost_daily."), *amounts) for name, *amounts in apart] == [
        ("list_cost_usd of 2026-07-14, gpu", Decimal(10), Decimal("9.99")),
        ("effective_cost_usd of 2026-07-14, gpu", Decimal(10), Decimal("9.99")),
    ]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")


def too_long(page: str) -> list[str]:
    """Lines wider than the terminal; a path alone on its line is kept whole."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", page).splitlines()
    return [line for line in lines if len(line) > 80 and " " in line.strip()]


@pytest.mark.usefixtures("narrow")
def test_a_model_on_bedrock_is_explained_by_usage_type(tmp_path: Path, capsys: Captured) -> None:
    """Qwen3 32B: 3 million tokens in at 0.15 are 0.45, a million out at 0.60; the other model's line is not its own.
    The file's rows are 0 and 1."""
    profile = "arn:aws:bedrock:us-east-1:000033334444:application-inference-profile/chatbot"
    usage = [
        ("Qwen3-32B-input", "3000", "0.45"),
        ("Qwen3-32B-output", "1000", "0.60"),
        ("GPT-OSS-20B-input", "1000", "7"),
    ]
    lines = [
        bedrock_hour(f"USE1-{name}-tokens", "1K tokens", count, cost, line_item_resource_id=profile)
        for name, count, cost in usage
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    config = write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", []))
    publish_tables(config, TABLES)
    words = ["explain", "model", "Qwen3 32B", "--config", str(config)]
    answer = json.loads(run_command(capsys, *words, "--json").out)
    assert [(line["usage_type"], line["effective_cost_usd"], line["source_row"]) for line in answer["lines"]] == [
        ("USE1-Qwen3-32B-output-tokens", "0.6000000000", 1),
        ("USE1-Qwen3-32B-input-tokens", "0.4500000000", 0),
    ]
    assert [row["effective_cost_usd"] for row in answer["mart_rows"]] == ["1.0500000000"]
    assert len(run_command(capsys, *words, "--csv", "--month", "2026-07").out.splitlines()) == 3
    assert too_long(run_command(capsys, *words).out) == []


@pytest.mark.parametrize(
    ("model", "month", "currency", "sentence"),
    [
        ("lama-3.1-8b", None, None, "'lama-3.1-8b' is not a known served model; did you mean llama-3.1-8b?"),
        ("llama-3.1-8b", "2026-08", None, "'2026-08' is not a known month of llama-3.1-8b; did you mean 2026-07?"),
        ("llama-3.1-8b", "July", None, "'July' is not a month; expected YYYY-MM."),
        ("llama-3.1-8b", None, "EUR", "'EUR' is not a known currency of llama-3.1-8b; the currencies are USD."),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(
    servers: Path, model: str, month: str | None, currency: str | None, sentence: str
) -> None:
    warehouse = Warehouse(load_settings(servers))
    with open_marts(warehouse, published_of(warehouse)) as marts, pytest.raises(UsageError) as refused:
        for_model(marts, model, month, currency)
    assert str(refused.value) == sentence


@pytest.mark.usefixtures("narrow")
def test_the_answer_fits_the_terminal(servers: Path, capsys: Captured) -> None:
    answer = run_command(capsys, "explain", "model", "llama-3.1-8b", "--lines", "2", "--config", str(servers))
    assert answer.code == 0, answer.error
    assert too_long(answer.out) == []
    assert "all 6 pieces of 3 lines" in answer.out
