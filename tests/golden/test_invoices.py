"""A bill and its invoices, by hand: the sums of the lines of INV-1 are stated next to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from support.bills import ORDINARY_LINE
from support.focus_exports import focus_lines, normalized
from support.lab import Lab

from pipelines.ingest.billing.columns import FOCUS
from pipelines.models.checks import failing_rows
from pipelines.models.contract import load_contract

DETAIL, MART, MONTH = "detail_invoice_reconciliation", "mart_invoice_reconciliation_monthly", "detail_billing_month"
ISSUER = "Amazon Web Services, Inc."


def line(cost: str, kind: str = "Usage", **more: str) -> dict[str, str]:
    fields = {"line_item_unblended_cost": cost, "line_item_line_item_type": kind, "bill_invoicing_entity": ISSUER}
    return {**ORDINARY_LINE, **fields, **more}


# Usage 10.004 + 20.002 = 30.006, tax 2.402, credit -5, together 27.408: 27.41 when rounded once. A line of no invoice.
BILL = [
    line("10.004"),
    line("20.002"),
    line("2.402", "Tax"),
    line("-5", "Credit"),
    line("7", bill_invoice_id="INV-2", bill_billing_entity="AWS Marketplace"),
    line("1", bill_invoice_id=""),
]


def invoice(cost: str, group: str, **more: Any) -> dict[str, Any]:
    fields = {
        "source_name": "invoices",
        "invoice_evidence": "focus",
        "invoice_issuer": ISSUER,
        "invoice_id": "INV-1",
        "billing_month": date(2026, 7, 1),
        "document_kind": "invoice",
        "issue_status": "issued",
        "currency": "USD",
    }
    return fields | {"line_group": group, "invoiced_cost": Decimal(cost)} | more


# Lines to the cent, which add up to the payable 27.41.
LINES = (invoice("30.01", "Usage"), invoice("2.40", "Tax"), invoice("-5", "Credit"))
TOTALS = (
    invoice("25.01", "before tax", invoice_evidence="aws"),
    invoice("2.40", "Tax", invoice_evidence="aws"),
)


def queried(sql: str, *names: str, invoices: tuple[Mapping[str, Any], ...], bill: Any = BILL) -> list[tuple]:
    with Lab({"2026-07": bill}, {}, invoices=invoices) as lab:
        return lab.ask(sql, *names)


@pytest.mark.parametrize("lines", [LINES, TOTALS, (invoice("27.41", "total", invoice_evidence="declared"),)])
def test_a_bill_ties_to_its_invoice_to_the_cent(lines: tuple[Mapping[str, Any], ...]) -> None:
    """27.41 less 27.408: two tenths of a cent are rounding, and nothing differs. FOCUS tolerates 1.00 of four lines."""
    columns = "invoice_status, invoiced_cost_usd, invoice_difference_usd, rounding_usd, focus_tolerance_usd"
    rows = queried(f"select {columns} from {MART} where invoice_id = 'INV-1'", MART, invoices=lines)
    assert rows == [("tied", Decimal("27.41"), 0, Decimal("0.002"), 1)]


def test_an_invoice_of_two_months_and_payers_ties_on_each() -> None:
    """Its 27.41 are 20.41 of one payer in July and 7.00 of another in August."""
    bill = {"2026-07": [line("20.41")], "2026-08": [line("7", bill_payer_account_id="000055556666")]}
    with Lab(bill, {}, invoices=(invoice("27.41", "total", invoice_evidence="declared"),)) as lab:
        rows = lab.ask(f"select invoice_status, invoice_difference_usd, billed_cost_usd from {MART} order by 3", MART)
    assert rows == [("tied", 0, 7), ("tied", 0, Decimal("20.41"))]


def test_a_wrong_cent_is_found_and_named_by_its_line_group() -> None:
    wrong = (LINES[0], invoice("2.41", "Tax"), LINES[2])
    rows = queried(
        f"select line_group, group_difference_usd, invoice_difference_usd, invoice_status from {DETAIL} "
        "order by line_group",
        DETAIL,
        invoices=wrong,
    )
    cent = Decimal("0.01")
    assert rows == [("Credit", 0, cent, "differs"), ("Tax", cent, cent, "differs"), ("Usage", 0, cent, "differs")]


def test_a_wrong_cent_is_found_in_its_line_where_the_bill_names_lines() -> None:
    """Two lines of Usage of 10.00 and 20.00; the invoice has a cent more on the second, so the first is not named."""
    charges = [
        {"BilledCost": cost, "EffectiveCost": cost, "InvoiceDetailId": detail}
        for cost, detail in (("4", "d-1"), ("6", "d-1"), ("20", "d-2"))
    ]
    lines = (
        invoice("10.00", "Usage", invoice_detail_id="d-1"),
        invoice("20.01", "Usage", invoice_detail_id="d-2"),
    )
    sql = f"select invoice_detail_id, group_difference_usd, invoice_status from {DETAIL} order by 1"
    with Lab({"2026-07": normalized(focus_lines(charges))}, {}, listed=FOCUS, invoices=lines) as lab:
        rows = lab.ask(sql, DETAIL)
    assert rows == [("d-1", 0, "differs"), ("d-2", Decimal("0.01"), "differs")]


def test_only_what_was_read_ties_to_the_invoice() -> None:
    sql = f"select invoice_id, invoice_status from {MART} order by invoice_id"
    assert queried(sql, MART, invoices=()) == [("", "not invoiced"), ("INV-1", "not read"), ("INV-2", "not read")]
    assert queried(sql, MART, invoices=LINES)[1:] == [("INV-1", "tied"), ("INV-2", "not read")]
    assert queried(f"select invoice_status from {MONTH}", MONTH, invoices=LINES) == [("partly tied",)]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"invoice_id": "INV-9"}, "no lines"),
        ({"invoice_issuer": "Reseller X"}, "other issuer"),
        ({"invoice_issuer": "Amazon Web Services EMEA SARL"}, "other issuer"),
        ({"invoice_issuer": "AWS"}, "tied"),
        ({"invoice_issuer": None}, "tied"),
        ({"currency": "EUR"}, "other currency"),
        ({"issue_status": "open"}, "open"),
        ({"issue_status": "voided"}, "voided"),
        ({"document_kind": "payment_receipt"}, "payment_receipt"),
    ],
)
def test_what_cannot_be_compared_is_named(more: dict[str, Any], status: str) -> None:
    lines = (invoice("27.41", "total", **more),)
    assert queried(f"select invoice_status from {DETAIL}", DETAIL, invoices=lines) == [(status,)]
    tied = queried(f"select invoice_status from {MART} where invoice_id = 'INV-1'", MART, invoices=lines)
    assert tied == [(status if status in ("tied", "open") else "not read",)]


@pytest.mark.parametrize(("stated", "status"), [("open", ["open", "open"]), ("issued", ["reconciled", "reconciled"])])
def test_the_billing_period_decides_what_is_open(stated: str, status: list[str]) -> None:
    """INV-1 is on an invoice and a line of 1.00 is not: without the issuer's word only the latter is open."""
    bill = [line("5"), line("1", bill_invoice_id="")]
    fields = {"document_kind": "billing_period", "invoice_id": "", "currency": "", "invoice_issuer": "AWS"}
    period = invoice("0", "", issue_status=stated, invoice_detail_id="2026-07", **fields)
    sql = f"select status from {MART} order by invoice_id"
    assert queried(sql, MART, invoices=(period,), bill=bill) == [(each,) for each in status]
    assert queried(sql, MART, invoices=(), bill=bill) == [("open",), ("reconciled",)]
    assert queried(f"select count(*) from {DETAIL}", DETAIL, invoices=(period,), bill=bill) == [(0,)]


@pytest.mark.parametrize(
    ("more", "check", "fix"),
    [
        ({"invoice_id": "INV-9"}, "invoice_that_no_bill_line_names", "Check that the export covers this payer"),
        (
            {"invoice_issuer": "Reseller X"},
            "invoice_of_another_issuer_than_its_bill_lines",
            "Read the invoice of the issuer that the bill names",
        ),
        (
            {"currency": "EUR"},
            "invoice_in_another_currency_than_its_bill_lines",
            "Read the document in the currency of the bill",
        ),
    ],
)
def test_an_invoice_that_matches_no_line_has_one_warning_with_its_fix(
    more: dict[str, Any], check: str, fix: str
) -> None:
    checks = {each.name: each for each in load_contract(f"detail/{DETAIL}").checks if each.severity == "warn"}
    with Lab({"2026-07": BILL}, {}, invoices=(invoice("27.41", "total", **more),)) as lab:
        lab.ask(f"select * from {DETAIL}", DETAIL)
        failing = {name: lab.ask(failing_rows(each, DETAIL), DETAIL) for name, each in checks.items() if each.query}
    assert {name: len(rows) for name, rows in failing.items() if rows} == {check: 1}
    assert checks[check].fix.startswith(fix)


def test_yen_have_no_cents() -> None:
    """1000.4 of the lines is 1000 yen."""
    bill = [line("1000.4", line_item_currency_code="JPY")]
    lines = (invoice("1000", "total", currency="JPY"),)
    columns = "invoice_status, rounding_usd, focus_tolerance_usd"
    assert queried(f"select {columns} from {DETAIL}", DETAIL, invoices=lines, bill=bill) == [
        ("tied", Decimal("-0.4"), 100)
    ]


def test_a_bill_without_invoice_ids_never_ties() -> None:
    """As a pro forma export: June names no invoice although the payer is billed in September."""
    june = [line("5", bill_invoice_id="")]
    september = [
        line(
            "5",
            bill_billing_period_start_date="2026-09-01T00:00:00Z",
            line_item_usage_start_date="2026-09-02T00:00:00Z",
            line_item_usage_end_date="2026-09-02T01:00:00Z",
            bill_invoice_id="",
        )
    ]
    with Lab({"2026-07": june, "2026-09": september}, {}) as lab:
        rows = lab.ask(f"select invoice_status from {MART} order by billing_month", MART)
    assert rows == [("no invoice ids",), ("not invoiced",)]
