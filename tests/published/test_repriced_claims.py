"""Claims at the prices of another day: the SoCC 2024 saving, and S8, where a price cut turns the verdict round."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.bills import instance_time, moment, one_attempt, write_config, write_events, write_export
from support.commands import run_command
from support.ledgers import REPRICE_TABLES, ask_published, publish_tables

from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.warehouse import Warehouse

STARTED, HOUR = datetime(2024, 12, 10, 10), timedelta(hours=1)
# S8: sequences of 8192 tokens a second on 32 trn1.32xlarge; tokens a second of one of 128 H100 (BF16).
SEQ_LEN, TRN_SEQUENCES, H100_TOKENS = 8192, 47.95, 6514
SIDES = (
    ("pretrain-trn", "trn1.32xlarge", 32, "21.50", TRN_SEQUENCES * SEQ_LEN),
    ("pretrain-gpu", "p5.48xlarge", 16, "98.32", H100_TOKENS * 128),
)
SOCC = ("--claim", "46.3%", "--gpu", "p4d.24xlarge", "--trainium", "trn1.32xlarge", "--then", "2024-11-20")


@pytest.fixture(scope="module")
def pretraining(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of each side, billed at the list prices of December 2024."""
    lines, events = [], []
    for run_id, instance_type, count, rate, tokens_a_second in SIDES:
        nodes = [f"i-{run_id}-{number}" for number in range(count)]
        for node in nodes:
            lines += instance_time(node, instance_type, rate, STARTED, HOUR, product_region_code="us-east-1")
        inside = [
            {
                "event": "checkpoint_saved",
                "at": moment(STARTED + HOUR - timedelta(seconds=1)),
                "step": 100,
                "uri": f"s3://acme/{run_id}/100",
                "tokens_seen": tokens_a_second * 3600,
            }
        ]
        run = {"model": "llama-3.1-8b", "dataset": "c4", "seq_len": SEQ_LEN, "purpose": "pretrain"}
        events += one_attempt(run_id, nodes, instance_type, STARTED, HOUR, inside, **run)
    root = tmp_path_factory.mktemp("pretraining")
    export = write_export(root, {"2024-12": lines})
    config = write_config(root, billing=export, runs=write_events(root / "runs", events))
    publish_tables(config, REPRICE_TABLES)
    return config


def reprice(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    result = run_command(capsys, "reprice", *words, "--json")
    assert result.code == 0, result.err
    (row,) = json.loads(result.out)
    return row


def test_the_socc_claim_is_19_9_percent_at_the_prices_of_2026(capsys: pytest.CaptureFixture[str]) -> None:
    """1 - 0.537 x 32.7726 / 21.957642 = 0.1985 (facts training-runs 6)."""
    row = reprice(capsys, *SOCC, "--at", "2026-08-01")
    assert round(float(row["saving_ratio"]), 3) == 0.199
    assert row["saving_before_ratio"] == "0.463000"


def test_a_claim_is_itself_at_its_own_prices(capsys: pytest.CaptureFixture[str]) -> None:
    assert reprice(capsys, *SOCC, "--at", "2024-12-20")["saving_ratio"] == "0.463000"


def test_the_prices_printed_with_a_claim_may_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    """1 - 0.537 x 32.77 / 21.957642 = 0.1986, by the price as the paper rounds it."""
    given = (*SOCC[:6], "--gpu-price", "32.77", "--trainium-price", "21.50")
    assert round(float(reprice(capsys, *given, "--at", "2026-08-01")["saving_ratio"]), 4) == 0.1986


def test_s8_costs_a_million_tokens_as_the_bill_has_it(pretraining: Path) -> None:
    """Trainium 32 x 21.50 / (47.95 x 8192 x 3600 / 1e6) = 0.4865; H100 at 98.32 0.5241."""
    builder = Builder(Warehouse(load_settings(pretraining)))
    found = dict(
        ask_published(builder, "select run_id, list_cost_per_million_tokens_usd from mart_run_cost").iter_rows()
    )
    assert float(found["pretrain-trn"]) == pytest.approx(0.4865, abs=5e-5)
    assert float(found["pretrain-gpu"]) == pytest.approx(0.5241, abs=5e-5)


@pytest.mark.parametrize(
    ("day", "baseline_usd", "saving"),
    [("2024-12-20", 0.5241, 0.072), ("2026-08-01", 0.2934, -0.658)],
    ids=("then", "now"),
)
def test_s8_turns_round_with_the_price(
    pretraining: Path, capsys: pytest.CaptureFixture[str], day: str, baseline_usd: float, saving: float
) -> None:
    """At 98.32 Trainium is 7.2 % cheaper, at 55.04 0.4865 / 0.2934 = 1.658: 66 % more. Even at 91.27 an hour."""
    row = reprice(capsys, "llama-3.1-8b", "--at", day, "--config", str(pretraining))
    assert float(row["baseline_unit_cost_usd"]) == pytest.approx(baseline_usd, abs=5e-5)
    assert float(row["candidate_unit_cost_usd"]) == pytest.approx(0.4865, abs=5e-5)
    assert float(row["saving_ratio"]) == pytest.approx(saving, abs=5e-4)
    assert float(row["break_even_baseline_price_per_hour_usd"]) == pytest.approx(91.27, abs=5e-3)
    assert float(row["saving_before_ratio"]) == pytest.approx(0.072, abs=5e-4)


def test_s8_by_blocks_is_an_offer_of_its_own(pretraining: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks at 47.76 (2026-10-07) and 9.532 (2026-07-28) an hour:
    1 - (0.4865 x 9.532 / 21.50) / (0.5241 x 47.76 / 98.32) = 1 - 0.21569 / 0.25459 = 0.153."""
    row = reprice(
        capsys, "llama-3.1-8b", "--at", "2026-11-01", "--offer", "capacity_block", "--config", str(pretraining)
    )
    assert row["offer"] == "capacity_block"
    assert float(row["saving_ratio"]) == pytest.approx(0.153, abs=5e-4)


def test_it_shows_the_more_expensive_side_as_words_and_table(
    pretraining: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_command(capsys, "reprice", "llama-3.1-8b", "--at", "2026-08-01", "--config", str(pretraining))
    assert "At these list prices Trainium is 65.8% more expensive." in result.out
    assert "Measured on the bill at list cost, it was 7.2% cheaper." in result.out
    table = run_command(capsys, "reprice", "llama", "--at", "2026-08-01", "--csv", "--config", str(pretraining))
    (row,) = csv.DictReader(io.StringIO(table.out))
    assert row["baseline_price_per_hour_usd"] == "55.040000"
