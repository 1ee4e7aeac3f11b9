"""The krone bill of the koku project, from its csv to the page, by the command line."""

from __future__ import annotations

import csv
import io
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.bills import write_config
from support.cur_exports import LEGACY_LINE, csv_text, legacy_export, packed

from pipelines.cli import main


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command; what it printed."""

    def run(*arguments: str) -> str:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["trainledger", *arguments])
        try:
            main()
        except SystemExit as left:
            assert not left.code, capsys.readouterr().err
        captured = capsys.readouterr()
        return captured.out + captured.err

    return run


def answer(printed: Any, config: Path, sql: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(printed("query", sql, "--csv", "--config", str(config)))))[1:]


def test_thirty_krone_from_the_bill_to_the_page(shared_data: Path, tmp_path: Path, printed: Any) -> None:
    """Three covered hours at 10 NOK without their negation: 30 billed; its Savings Plan makes 0.1 an hour effective.

    Next to it is a bill of 55.04 dollars of another payer; no figure anywhere is 85.04.
    """
    content = (shared_data / "billing/cur_legacy/koku_2023-06-01.csv").read_bytes()
    lines = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert {line["lineItem/CurrencyCode"] for line in lines} == {"NOK"}
    billed = sum(Decimal(line["lineItem/UnblendedCost"]) for line in lines)
    effective = sum(Decimal(line["savingsPlan/SavingsPlanEffectiveCost"]) for line in lines)
    assert (billed, effective) == (Decimal(30), Decimal("0.3"))
    legacy_export(tmp_path, {"day.csv": content}, name="krone", month="20230601-20230701")
    june = {key: value.replace("2026-07-01", "2023-06-01") for key, value in LEGACY_LINE.items()}
    legacy_export(tmp_path, {"a.csv.gz": packed(csv_text([june]))}, name="dollar", month="20230601-20230701")
    config = write_config(tmp_path, billing="krone")
    config.write_text(config.read_text() + '\n[[billing]]\nname = "dollar"\nlocation = "dollar"\n')

    warned = printed("build", "--config", str(config))
    assert "savings plan usage without its negation" in warned
    invoices = answer(
        printed,
        config,
        "select payer_account_id, currency, billed_cost_usd, ledger_cost_usd, difference_usd "
        "from mart_invoice_reconciliation_monthly order by currency",
    )
    assert [(payer, unit, *map(Decimal, costs)) for payer, unit, *costs in invoices] == [
        ("0099999999999", "NOK", Decimal(30), Decimal(30), Decimal(0)),
        ("000011112222", "USD", Decimal("55.04"), Decimal("55.04"), Decimal(0)),
    ]
    ledger = answer(
        printed,
        config,
        "select billing_currency, sum(effective_cost_usd), sum(list_cost_usd) from mart_cost_ledger_daily "
        "group by 1 order by 1",
    )
    # The bill does not state the currency of its list prices, so they are taken as the bill's: 3 x 10.
    assert [(unit, Decimal(cost)) for unit, cost, _ in ledger] == [("NOK", effective), ("USD", Decimal("55.04"))]
    assert Decimal(ledger[0][2]) == sum(Decimal(line["pricing/publicOnDemandCost"]) for line in lines)

    printed("report", "--out", str(tmp_path / "report.html"), "--config", str(config))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL).replace("\u00a0", " ").split())
    assert "NOK 30.00 NOK 30.00 NOK 0.00" in page and "$55.04 $55.04 $0.00" in page
    assert "The bills are in NOK and USD." in page
    assert "85" not in re.findall(r"(?:\$|NOK )([\d,]+)", page)


def test_a_krone_bill_alone_reads_like_any_other(shared_data: Path, tmp_path: Path, printed: Any) -> None:
    content = (shared_data / "billing/cur_legacy/koku_2023-06-01.csv").read_bytes()
    legacy_export(tmp_path, {"day.csv": content}, name="krone", month="20230601-20230701")
    config = write_config(tmp_path, billing="krone")
    built = printed("build", "--config", str(config))
    assert "Published 1: 1 billing month," in built and "NOK\u00a030.00" in built
    # Its warnings are in kroner too.
    assert "used cost NOK 0.30" in built and "$" not in built
    assert "Nothing changed since publication 1" in printed("build", "--config", str(config))
