"""Invoices as FOCUS, AWS and people write them: recorded ones, made-up ones, and what is refused by name."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.aws_answers import aws_answers

from pipelines.base.errors import SourceError
from pipelines.config.sources import InvoiceSource
from pipelines.ingest.inventory.invoices import ANSWERS, read_invoices

SUMMARY: dict[str, Any] = {
    "AccountId": "000011112222",
    "InvoiceId": "INV-1",
    "IssuedDate": "2026-08-03T00:00:00Z",
    "Entity": {"InvoicingEntity": "Amazon Web Services, Inc.", "BillingEntity": "AWS_MARKETPLACE"},
    "BillingPeriod": {"Month": 7, "Year": 2026},
    "BillType": "ANNIVERSARY",
    "InvoiceType": "INVOICE",
    "BaseCurrencyAmount": {"TotalAmount": "110.00", "TotalAmountBeforeTax": "100.00", "CurrencyCode": "USD"},
}
MEMO = SUMMARY | {"InvoiceId": "MEMO-1", "InvoiceType": "CREDIT_MEMO", "OriginalInvoiceId": "INV-1"}
DETAIL = {
    "InvoiceIssuerName": "AWS",
    "InvoiceId": "INV-1",
    "InvoiceDetailId": "1",
    "BilledCost": "10.5",
    "BillingCurrency": "USD",
    "ChargeCategory": "Usage",
    "BillingPeriodStart": "2026-07-01T00:00:00Z",
    "InvoiceIssueStatus": "Issued",
    "InvoiceIssueDate": "2026-08-03T00:00:00Z",
    "InvoiceDetailLastUpdated": "2026-08-03T00:00:00Z",
    "ReferenceInvoiceId": "INV-1",
}
TOTALS = "invoice_id,issued_date,currency,total,tax\nINV-1,2026-08-03,USD,110.00,10.00\nINV-2,,EUR,5,\n"


def table(*rows: dict[str, str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def answer(*summaries: dict[str, Any]) -> str:
    return json.dumps({"InvoiceSummaries": list(summaries)})


def saved(root: Path, *texts: str, **more: Any) -> InvoiceSource:
    folder = root / "invoices"
    folder.mkdir()
    for number, text in enumerate(texts):
        suffix = "json" if text.startswith(("{", "[")) else "csv"
        (folder / f"{number}.{suffix}").write_text(text)
    return InvoiceSource(name="invoices", location=str(folder), **more)


def amounts(source: InvoiceSource) -> dict[tuple[str, str], Decimal]:
    rows = read_invoices([source]).table.to_dicts()
    return {(row["invoice_id"], row["line_group"]): row["invoiced_cost"] for row in rows}


def test_the_recorded_answer_of_aws_is_read_as_it_came(shared_data: Path) -> None:
    """Three documents (shared/data README): tax apart, and a credit memo of -12.50 that corrects the first."""
    file = shared_data / "billing" / "invoices" / "list_invoice_summaries_seed42.json"
    source = InvoiceSource(name="recorded", location=str(file))
    assert amounts(source) == {
        ("INV-2026-05-0001", "before tax"): Decimal("8399.38"),
        ("INV-2026-05-0001", "Tax"): Decimal("0.28"),
        ("INV-2026-05-0002", "before tax"): Decimal("9393.56"),
        ("INV-2026-05-0002", "Tax"): Decimal("6.51"),
        ("MEMO-2026-06-0009", "before tax"): Decimal("-12.50"),
        ("MEMO-2026-06-0009", "Tax"): Decimal(0),
    }
    memo = read_invoices([source]).table.to_dicts()[-1]
    assert (memo["document_kind"], memo["reference_invoice_id"]) == ("credit_memo", "INV-2026-05-0001")
    # 1780444800 seconds since 1970 are 3 June 2026, 00:00 UTC.
    assert read_invoices([source]).table["issued_at"][0] == datetime(2026, 6, 3)


def test_the_recorded_invoice_detail_is_read_line_by_line(shared_data: Path) -> None:
    file = shared_data / "billing" / "focus14" / "fdt_aws_seed42" / "focus_1_4_invoice_detail.csv"
    found = amounts(InvoiceSource(name="recorded", location=str(file)))
    assert len(found) == 6
    assert found["INV-2026-05-0001", "Purchase"] == Decimal("7260.95")
    assert found["INV-2026-05-0001", "Tax"] == Decimal("0.2771221200")


def test_the_recorded_billing_period_is_read(shared_data: Path) -> None:
    """One month of AWS, closed; it is no invoice."""
    file = shared_data / "billing" / "focus14" / "fdt_aws_seed42" / "focus_1_4_billing_period.csv"
    (row,) = read_invoices([InvoiceSource(name="recorded", location=str(file))]).table.to_dicts()
    assert (row["document_kind"], row["issue_status"], row["billing_month"]) == (
        "billing_period",
        "issued",
        date(2026, 5, 1),
    )
    assert (row["invoice_id"], row["invoiced_cost"]) == ("", 0)


def test_invoice_detail_as_parquet_is_that_of_its_csv(shared_data: Path, tmp_path: Path) -> None:
    """Text as in the csv, and amounts and times as Parquet types them."""
    file = shared_data / "billing" / "focus14" / "fdt_aws_seed42" / "focus_1_4_invoice_detail.csv"
    expected = amounts(InvoiceSource(name="recorded", location=str(file)))
    text = pl.read_csv(file, infer_schema=False)
    times = pl.col("^.*(Start|Date)$").str.to_datetime("%Y-%m-%dT%H:%M:%SZ")
    typed = text.with_columns(pl.col("BilledCost").cast(pl.Decimal(20, 15)), times)
    for name, frame in {"text": text, "typed": typed}.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
        assert amounts(InvoiceSource(name=name, location=str(tmp_path / f"{name}.parquet"))) == expected
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    broken = read_invoices([InvoiceSource(name="broken", location=str(tmp_path / "broken.parquet"))])
    assert "broken.parquet is not a Parquet file" in broken.warnings[0]


def test_parquet_with_any_byte_damaged_is_left_out_by_name(tmp_path: Path) -> None:
    """A byte of 1 in its description made Polars end the process, or raise what is no Exception."""
    pl.DataFrame({"a": ["x", "y"]}).write_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for at in range(4, len(whole) - 4):
        (tmp_path / "a.parquet").write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
        (warning,) = read_invoices([InvoiceSource(name="broken", location=str(tmp_path))]).warnings
        assert "a.parquet" in warning


def test_totals_without_a_tax_stay_whole(tmp_path: Path) -> None:
    assert amounts(saved(tmp_path, TOTALS)) == {
        ("INV-1", "before tax"): Decimal(100),
        ("INV-1", "Tax"): Decimal(10),
        ("INV-2", "total"): Decimal(5),
    }


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({}, "invoice"),
        ({"BillType": "PURCHASE"}, "purchase"),
        ({"BillType": "REFUND"}, "refund"),
        ({"InvoiceType": "PAYMENT_RECEIPT"}, "payment_receipt"),
        ({"CommercialInvoiceId": "C-1"}, "tax_copy"),
    ],
)
def test_documents_are_of_their_kind(tmp_path: Path, more: dict[str, str], kind: str) -> None:
    rows = read_invoices([saved(tmp_path, answer(SUMMARY | more))]).table
    assert set(rows["document_kind"]) == {kind}
    assert set(rows["billing_entity"]) == {"AWS Marketplace"}


def test_the_newer_of_two_readings_of_a_line_counts(tmp_path: Path) -> None:
    """An invoice is open first; its lines are delivered again once it is issued."""
    first = DETAIL | {
        "InvoiceIssueStatus": "Open",
        "InvoiceIssueDate": "",
        "BilledCost": "9",
        "InvoiceDetailLastUpdated": "2026-07-20T00:00:00Z",
    }
    (row,) = read_invoices([saved(tmp_path, table(DETAIL), table(first))]).table.to_dicts()
    assert (row["invoiced_cost"], row["issue_status"]) == (Decimal("10.5"), "issued")


def test_a_line_that_changes_its_category_counts_once(tmp_path: Path) -> None:
    """FOCUS names a line by its id: 10.50 of Usage, delivered again as an Adjustment, are 10.50 and not 21.00."""
    newer = DETAIL | {"ChargeCategory": "Adjustment", "InvoiceDetailLastUpdated": "2026-08-05T00:00:00Z"}
    found = read_invoices([saved(tmp_path, table(DETAIL), table(newer))])
    assert found.table.select("line_group", "invoiced_cost").rows() == [("Adjustment", Decimal("10.5"))]


@pytest.mark.parametrize(("total", "parts"), [("110.00", [("Tax", 10), ("before tax", 100)]), ("111.00", [])])
def test_a_total_and_its_parts_are_one_invoice(tmp_path: Path, total: str, parts: list[Any]) -> None:
    """110.00 typed without its tax, then as 100.00 and 10.00 of tax, are 110.00 and not 220.00; 111.00 contradicts."""
    texts = f"invoice_id,currency,total\nINV-1,USD,{total}\n", "invoice_id,currency,total,tax\nINV-1,USD,110.00,10.00\n"
    found = read_invoices([saved(tmp_path, *texts)])
    assert found.table.select("line_group", "invoiced_cost").rows() == parts
    assert bool(found.warnings) is not bool(parts)


def test_a_third_newer_reading_settles_what_two_older_ones_state(tmp_path: Path) -> None:
    older = DETAIL | {"InvoiceDetailLastUpdated": "2026-07-20T00:00:00Z"}
    texts = [table(older | {"BilledCost": "9"}), table(older | {"BilledCost": "8"}), table(DETAIL)]
    found = read_invoices([saved(tmp_path, *texts)])
    assert (found.warnings, found.table["invoiced_cost"].to_list()) == ([], [Decimal("10.5")])


def test_months_outside_the_range_are_left_out(tmp_path: Path) -> None:
    found = read_invoices([saved(tmp_path, table(DETAIL), first_month="2026-08")])
    assert found.table.height == 0
    assert found.warnings == ["[[invoices]] invoices contains no invoice; check its location, or remove the source."]


def test_fields_that_an_older_client_drops_are_reported(tmp_path: Path) -> None:
    older = {name: value for name, value in SUMMARY.items() if name != "BillType"}
    (warning,) = read_invoices([saved(tmp_path, answer(older))]).warnings
    assert "BillingEntity or BillType is missing" in warning


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["{}"], "0.json has no InvoiceSummaries"),
        (["[]"], "0.json has no InvoiceSummaries"),
        ([json.dumps({"InvoiceSummaries": [SUMMARY], "NextToken": "p2"})], "more pages belong to it"),
        ([answer(SUMMARY | {"BaseCurrencyAmount": {"CurrencyCode": "USD"}})], "number 1 has no total"),
        ([answer(SUMMARY | {"Entity": 3})], "Entity is not a JSON object"),
        ([answer(SUMMARY | {"InvoiceId": ""})], "has no invoice id"),
        ([answer(SUMMARY | {"BaseCurrencyAmount": {"TotalAmount": "much"}})], "TotalAmount 'much'; write an amount"),
        (["invoice_id,total\nINV-1,5\n"], "0.csv has no column currency"),
        (["invoice_id,amount\nINV-1,5\n"], "0.csv has the column 'amount'"),
        (["invoice_id,currency,total\nINV-1,USD\n"], "line 2 has not as many cells"),
        ([table(DETAIL | {"InvoiceIssueStatus": "Draft"})], "InvoiceIssueStatus 'draft'; write Open"),
        ([table(DETAIL | {"BillingCurrency": ""})], "line 2 has no BillingCurrency"),
        ([table(DETAIL | {"BillingCurrency": "dollars"})], "line 2 has the currency 'dollars'; write its code"),
        (["invoice_id,currency,total,issued_date\nINV-1,USD,5,03.08.2026\n"],
         "line 2 has issued_date '03.08.2026'; write a day such as 2026-08-03."),
        (["invoice_id,currency,total\nINV-1,usd,5\n"], "line 2 has the currency 'usd'; write its code"),
        (["BillingPeriodStart,InvoiceIssuerName,BillingPeriodStatus\n2026-07-01T00:00:00Z,AWS,Done\n"],
         "line 2 needs a BillingPeriodStart, an InvoiceIssuerName and the BillingPeriodStatus Open or Closed"),
        ([table({k: v for k, v in DETAIL.items() if k != "BilledCost"})], "0.csv has no column BilledCost"),
        ([answer(SUMMARY), answer(SUMMARY | {"AccountId": "000099998888"})], "Invoice INV-1 has other values in"),
        (
            [answer(MEMO, MEMO | {"InvoiceId": "MEMO-2", "BaseCurrencyAmount": {**SUMMARY["BaseCurrencyAmount"],
             "TotalAmount": "-5", "TotalAmountBeforeTax": "-5"}})],
            "Credit memos have both signs: MEMO-1 is positive and MEMO-2 negative",
        ),
    ],
)  # fmt: skip
def test_what_is_no_invoice_is_left_out_by_name(tmp_path: Path, texts: list[str], words: str) -> None:
    """No line of such an invoice counts; others do."""
    found = read_invoices([saved(tmp_path, *texts, "invoice_id,currency,total\nINV-9,USD,1\n")])
    (warning,) = found.warnings
    assert words in warning
    assert warning.endswith(("Until then it is left out.", "Until then all are left out."))
    assert found.table["invoice_id"].to_list() == ["INV-9"]


def test_an_invoice_with_a_malformed_line_has_none(tmp_path: Path) -> None:
    lines = table(DETAIL, DETAIL | {"InvoiceDetailId": "2", "BilledCost": "much"})
    found = read_invoices([saved(tmp_path, lines, TOTALS)])
    assert found.table["invoice_evidence"].unique().to_list() == ["declared"]
    (warning,) = found.warnings
    assert "0.csv line 3 has BilledCost 'much'; write an amount of money such as 1234.50. The line may be of" in warning


def test_a_source_without_an_invoice_is_named_after_a_malformed_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = InvoiceSource(name="empty", location=str(tmp_path / "empty"))
    malformed, named = sorted(read_invoices([saved(tmp_path, "{}"), empty]).warnings)
    assert "has no InvoiceSummaries" in malformed
    assert named.startswith("[[invoices]] empty contains no invoice")


def test_another_invoice_is_another_fingerprint(tmp_path: Path) -> None:
    source = saved(tmp_path, TOTALS)
    before = ANSWERS.fingerprint(source)
    (tmp_path / "invoices" / "0.csv").write_text(TOTALS + "INV-3,,USD,1,\n")
    assert ANSWERS.fingerprint(source) != before


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")


def queried(url: str) -> InvoiceSource:
    """July 2026 of one account, from the API at `url`."""
    return InvoiceSource(
        name="queried",
        kind="aws",
        accounts=("000011112222",),
        regions=("us-east-1",),
        first_month="2026-07",
        last_month="2026-07",
        endpoint_url=url,
    )


def test_aws_is_queried_by_account_and_month(credentials: None) -> None:
    with aws_answers() as answers:
        answers.pages["ListInvoiceSummaries"] = [{"InvoiceSummaries": [SUMMARY | {"IssuedDate": 1785715200}]}]
        rows = read_invoices([queried(answers.url)]).table.to_dicts()
        assert answers.calls == ["ListInvoiceSummaries 1"]
    assert [(row["line_group"], row["invoiced_cost"]) for row in rows] == [("Tax", 10), ("before tax", 100)]
    assert rows[0]["billing_month"] == date(2026, 7, 1)


def test_a_denied_call_names_its_permission(credentials: None) -> None:
    with aws_answers() as answers:
        answers.errors["ListInvoiceSummaries"] = "AccessDeniedException"
        with pytest.raises(SourceError, match="grant invoicing:ListInvoiceSummaries"):
            read_invoices([queried(answers.url)])
