"""FOCUS exports that are not what they claim to be, delivered next to a good bill: one sentence, the last one stays."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support.cur_exports import csv_text, packed, stored
from support.focus_exports import focus_export, focus_lines, focus_parquet
from support.spoiled import Ledger

from pipelines.ingest.billing.columns import snake

JUNE = "2026-06"
FILE = r"focus/data/billing_period=2026-06/\S+/f-00001\.csv\.gz"
LINE = {
    "ChargePeriodStart": "2026-06-01T00:00:00Z",
    "ChargePeriodEnd": "2026-06-01T01:00:00Z",
    "BilledCost": "55.04",
    "EffectiveCost": "55.04",
    "ListCost": "55.04",
    "ConsumedQuantity": "1",
    "ResourceId": "i-9",
    "SkuMeter": "USW2-BoxUsage:p5.48xlarge",
    "Tags": '{"user:team": "nlp"}',
}
COLUMNS = tuple(focus_lines([LINE], JUNE)[0])


def text_of(*lines: dict[str, str], version: str = "1.2") -> str:
    return csv_text(focus_lines(lines or [LINE], JUNE, version)).decode()


def deliver(ledger: Ledger, content: bytes, file: str = "f-00001.csv.gz", columns: tuple[str, ...] = COLUMNS) -> None:
    """Deliver June as a FOCUS export, next to the good July of the ledger."""
    focus_export(ledger.root, {file: content}, columns, name="focus", month=JUNE)
    ledger.config.write_text(ledger.config.read_text() + '\n[[billing]]\nname = "focus"\nlocation = "focus"\n')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(packed(text_of().encode())[:-30], rf"{FILE} is cut short or damaged", id="truncated"),
        pytest.param(
            packed(text_of().replace("BilledCost", "Billed").encode()),
            rf"{FILE} has no column billed_cost; it is not a complete FOCUS export",
            id="without BilledCost",
        ),
        pytest.param(
            packed(text_of(LINE, {**LINE, "BilledCost": "about 55"}).encode()),
            rf"{FILE}, row 3 \(the header is row 1\), column BilledCost: 'about 55' is not a number below 10 billion",
            id="text in BilledCost",
        ),
        pytest.param(
            packed(text_of({**LINE, "EffectiveCost": "NaN"}).encode()),
            rf"{FILE}, row 2 \(the header is row 1\), column EffectiveCost: 'NaN' is not a number below 10 billion",
            id="not a number in EffectiveCost",
        ),
        *(
            pytest.param(
                packed(text_of(LINE, {**LINE, column: ""}).encode()),
                rf"{FILE}, row 3 \(the header is row 1\), column {column}: the amount is missing; fix that value",
                id=f"no {column}",
            )
            for column in ("BilledCost", "EffectiveCost")
        ),
        pytest.param(
            packed(text_of({**LINE, "ChargePeriodStart": "2026-06-31T00:00:00Z"}).encode()),
            rf"{FILE}, row 2 \(the header is row 1\), column ChargePeriodStart: '2026-06-31T00:00:00Z' is not an ISO",
            id="a day that does not exist",
        ),
        pytest.param(
            packed((text_of(version="1.0").rstrip("\n") + ",more\n").encode()),
            rf"{FILE}, row 2 \(the header is row 1\): \d+ values under \d+ columns",
            id="ragged",
        ),
    ],
)
def test_a_file_that_is_no_focus_bill(ledger: Ledger, content: bytes, message: str) -> None:
    deliver(ledger, content)
    assert re.search(message, ledger.refused(3))


def test_truncated_parquet(ledger: Ledger) -> None:
    deliver(ledger, focus_parquet(focus_lines([LINE], JUNE))[:-20], "f-00001.parquet")
    assert re.search(r"f-00001\.parquet is not a complete Parquet file", ledger.refused(3))


def test_parquet_with_text_for_a_cost(ledger: Ledger) -> None:
    deliver(ledger, focus_parquet(focus_lines([LINE], JUNE), {"BilledCost": pa.string()}), "f-00001.parquet")
    assert re.search(
        r"f-00001\.parquet: column BilledCost is string, not a number; deliver it again", ledger.refused(3)
    )


def test_a_currency_that_is_none(ledger: Ledger) -> None:
    deliver(ledger, packed(text_of({**LINE, "BillingCurrency": "dollars"}).encode()))
    error = ledger.builds("stg_aws__invoice_total").refused(1)
    assert "stg_aws__invoice_total 2026-06: currency is no three letter code" in error
    assert re.search(r"billing currency dollars|cost dollars ", error)


def test_an_accelerator_that_no_list_has(ledger: Ledger) -> None:
    deliver(ledger, packed(text_of({**LINE, "SkuMeter": "USW2-BoxUsage:p99.48xlarge"}).encode()))
    result = ledger.builds("fct_charge").run("build")
    assert result.code == 0, result.err
    assert (
        "accelerator type missing from ref instance type" in result.err and "instance type p99.48xlarge" in result.err
    )


def test_tags_that_are_broken_json_cost_no_dollar(ledger: Ledger) -> None:
    """A 1.0 export whose Tags cannot be read: the month is built without them, and a warning names the row."""
    deliver(ledger, packed(text_of(LINE, {**LINE, "Tags": '{"user:team": '}, version="1.0").encode()))
    result = ledger.builds("mart_cost_ledger_daily").run("build")
    assert result.code == 0, result.err
    answer = ledger.run("query", "select sum(billed_cost_usd) from mart_cost_ledger_daily", "--csv")
    # Six hours of July and two of June.
    assert Decimal(answer.out.splitlines()[-1]) == Decimal("440.32")
    record = (ledger.root / "warehouse/publications/000002.json").read_text()
    assert re.search(r"1 value of Tags cannot be read \(first '\{[^\n]*in row 3\)", record)


@pytest.mark.parametrize("column", ["BilledCost", "EffectiveCost"])
def test_parquet_without_an_amount(ledger: Ledger, column: str) -> None:
    """FOCUS allows neither to be null; a zero of ours would be a guess."""
    lines = focus_lines([LINE, {**LINE, column: ""}], JUNE)
    deliver(ledger, focus_parquet(lines), "f-00001.parquet")
    assert re.search(rf"f-00001\.parquet, row 2, column {column}: the amount is missing", ledger.refused(3))


# Values outside the sets FOCUS allows (facts aws-billing 1.4).
ODD = {
    "ChargeClass": "Corrected",
    "ChargeFrequency": "Monthly",
    "PricingCategory": "Spot",
    "CommitmentDiscountCategory": "Hours",
    "CommitmentDiscountStatus": "Idle",
    "CapacityReservationStatus": "Free",
    "ChargeCategory": "Fee",
}


@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
def test_words_focus_does_not_know_are_reported_by_name_and_count(tmp_path: Path, form: str) -> None:
    """One line is right, two have a word in each of these columns that it cannot have."""
    lines = focus_lines([LINE, {**LINE, **ODD}, {**LINE, **ODD}], JUNE)
    content = packed(csv_text(lines)) if form == "csv.gz" else focus_parquet(lines)
    (raw,) = stored(focus_export(tmp_path, {f"f.{form}": content}, COLUMNS, month=JUNE), tmp_path / "raw")
    text = " ".join(raw.warnings)
    assert len(raw.warnings) == len(ODD)
    for name, word in ODD.items():
        assert re.search(rf"2 values of {snake(name)} are not among [\w, -]+ \(most often '{word}'\)", text), text


def test_another_kind_than_its_entry_names_is_refused_before_any_step(ledger: Ledger) -> None:
    """Nothing but the file shows that it is FOCUS; without a kind in the entry it is read as what it is."""
    deliver(ledger, packed(text_of().encode()), columns=())
    ledger.configure('name = "focus"\n', 'name = "focus"\nkind = "cur2"\n')
    error = ledger.refused(3)
    assert re.search(r'another kind of bill \(FOCUS export\); write kind = "auto" in its', error)
    assert "[1/" not in error
    ledger.configure('kind = "cur2"\n', "")
    assert ledger.builds("fct_charge").run("build").code == 0
