"""Invoices: FOCUS 1.4 InvoiceDetail and BillingPeriod, answers of AWS's ListInvoiceSummaries, or a csv of totals.

A bill line names its invoice; what the invoice itself charges comes from here, and detail_invoice_reconciliation
compares the two.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import polars as pl

from pipelines.base.aws import entries_of
from pipelines.base.errors import MalformedError
from pipelines.config.sources import AnswerSource, InvoiceSource
from pipelines.ingest.inventory import answers
from pipelines.ingest.inventory.answers import LEFT_OUT, Answers, Entry, Inventory, Row, Table, kept, values_of
from pipelines.ingest.schema import schema

# A line of an invoice, or a part of its total. `line_group` is the charge category of a line (FOCUS), `Tax` and
# `before tax` where a document states only these, and `total` where its tax is unknown. `invoiced_cost` is in the
# currency of the row.
SCHEMA = schema(
    "source_name invoice_evidence invoice_issuer invoice_id invoice_detail_id account_id billing_month:date "
    "billing_entity document_kind issue_status issued_at reference_invoice_id currency line_group invoiced_cost:money"
)
FOCUS, API, DECLARED = "focus", "aws", "declared"
_TOTALS = ("invoice_id", "invoice_issuer", "issued_date", "currency", "total", "tax")
_REQUIRED = ("invoice_id", "currency", "total")
# Not null in FOCUS 1.4 (facts standards-2026 1.6).
_DETAIL = (
    "InvoiceIssuerName", "InvoiceId", "InvoiceDetailId", "BilledCost", "BillingCurrency", "ChargeCategory",
    "BillingPeriodStart", "InvoiceIssueStatus", "ReferenceInvoiceId",
)  # fmt: skip
_PERIOD = ("BillingPeriodStart", "InvoiceIssuerName", "BillingPeriodStatus")
_STATUSES = ("open", "issued", "voided")
_CLOSINGS = {"Open": "open", "Closed": "issued"}
_ENTITIES = {"AWS": "AWS", "AWS_MARKETPLACE": "AWS Marketplace"}
_KINDS = {"ANNIVERSARY": "invoice", "PURCHASE": "purchase", "REFUND": "refund"}
_LIST = "invoicing:ListInvoiceSummaries"
_SUMMARIES = "InvoiceSummaries"
# Lines that state the same part of a document have the same values of these.
_KEY = ("invoice_evidence", "invoice_issuer", "invoice_id", "invoice_detail_id", "line_group")
_TAX_PARTS = ("before tax", "Tax")
# As many of these name the invoice.
_OF_INVOICE = 3


def read_invoices(sources: Sequence[InvoiceSource]) -> Inventory:
    """The lines of the invoices of all sources; what is malformed, or has other values elsewhere, is left out."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    warnings: list[str] = []
    for source in sources:
        seen, known = 0, len(warnings)
        for row in kept(ANSWERS.read(source, warnings), partial(_lines, warnings=warnings), warnings):
            # One without a month is read, whatever the months of its source.
            if (month := row.get("billing_month")) and not source.reads(f"{month:%Y-%m}"):
                continue
            seen += 1
            row["source_name"] = source.name
            found.setdefault(_key(row), []).append(row)
        if not seen and LEFT_OUT not in "".join(warnings[known:]):
            warnings.append(
                f"[[invoices]] {source.name} contains no invoice; check its location, or remove the source."
            )
    counted, contradicted = {}, set()
    for key, readings in found.items():
        try:
            counted[key] = _newest(readings)
        except MalformedError as error:
            warnings.append(f"{error} {LEFT_OUT}")
            contradicted.add(key[:_OF_INVOICE])
    # A document without its tax and one with it state the same invoice.
    parts = [row for row in counted.values() if row["line_group"] in _TAX_PARTS]
    for key, row in [(key, row) for key, row in counted.items() if row["line_group"] == "total"]:
        if split := [part for part in parts if _key(part)[:_OF_INVOICE] == key[:_OF_INVOICE]]:
            stated = sum(part["invoiced_cost"] for part in split), split[0]["currency"]
            if (row["invoiced_cost"], row["currency"]) == stated:
                del counted[key]
            else:
                warnings.append(f"{_contradiction(row, split[0])} {LEFT_OUT}")
                contradicted.add(key[:_OF_INVOICE])
    # Of an invoice all lines count, or none.
    lines = [row for key, row in counted.items() if key[:_OF_INVOICE] not in contradicted]
    return Inventory(pl.DataFrame(_of_one_sign(lines, warnings), schema=SCHEMA).sort(_KEY), sorted(set(warnings)))


def _queried(source: AnswerSource, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """The answers of AWS: the invoices of each account in each month from the first on."""
    assert isinstance(source, InvoiceSource) and source.first_month
    where = f"[[invoices]] {source.name}"
    client = ANSWERS.client(source, "invoicing", source.queried_regions[0])
    months = pl.date_range(
        datetime.strptime(source.first_month, "%Y-%m"),
        datetime.strptime(source.last_month, "%Y-%m") if source.last_month else datetime.now(UTC).replace(tzinfo=None),
        "1mo",
        eager=True,
    )
    for account in source.accounts:
        for month in months:
            period = {"BillingPeriod": {"Month": month.month, "Year": month.year}}
            of_account = {"ResourceType": "ACCOUNT_ID", "Value": account}
            found = entries_of(
                client, "list_invoice_summaries", _SUMMARIES, where, _LIST, Selector=of_account, Filter=period
            )
            yield f"{where}, account {account}, {month:%Y-%m} {_LIST}", {_SUMMARIES: found}


ANSWERS = Answers("invoices", (".json", ".csv", ".parquet"), _queried)


def _lines(answer: Any, where: str, warnings: list[str]) -> Iterator[Row]:
    """The lines of one file or answer; MalformedError with the field at fault."""
    if isinstance(answer, Table):
        names = answer.names
        if "BillingPeriodStatus" in names:
            read, required = _period, _PERIOD
        elif "InvoiceIssueStatus" in names:
            read, required = _detail, _DETAIL
        else:
            read, required = _totals, _REQUIRED
            if unknown := [name for name in names if name not in _TOTALS]:
                raise MalformedError(
                    f"{where} has the column {unknown[0]!r}; a csv of totals has {', '.join(_TOTALS)}, and FOCUS "
                    "InvoiceDetail has InvoiceIssueStatus."
                )
        if missing := [name for name in required if name not in names]:
            raise MalformedError(f"{where} has no column {missing[0]}; the first line must name it (docs/invoices.md).")
        unread: list[str] = []
        rows = [*kept(answer.rows, read, unread)]
        if unread and read is _detail:
            line = unread[0].removesuffix(f" {LEFT_OUT}")
            raise MalformedError(f"{line} The line may be of any invoice in {where}, so this concerns the whole file.")
        warnings += unread
        yield from rows
        return
    if not isinstance(answer, Mapping) or _SUMMARIES not in answer:
        raise MalformedError(f"{where} has no {_SUMMARIES}; save the answer of list-invoice-summaries.")
    lacking: list[str] = []
    yield from kept(answers.entries(answer, _SUMMARIES, where), partial(_summary, lacking=lacking), warnings)
    if lacking:
        warnings.append(
            f"{where}: BillingEntity or BillType is missing, as older clients drop them, so kinds of "
            "invoices are unknown; save the answer with a newer AWS CLI."
        )


def _detail(row: Entry, where: str) -> Iterator[Row]:
    """A line of FOCUS 1.4 InvoiceDetail."""
    for name in _DETAIL:
        if not row[name].strip():
            raise MalformedError(f"{where} has no {name}; FOCUS requires it.")
    status = row["InvoiceIssueStatus"].strip().lower()
    if status not in _STATUSES:
        raise MalformedError(f"{where} has InvoiceIssueStatus {status[:80]!r}; write Open, Issued or Voided.")
    reference = row["ReferenceInvoiceId"].strip()
    invoice_id = row["InvoiceId"].strip()
    started_at = answers.moment(row, "BillingPeriodStart", where)
    grain = answers.json_object(row, "InvoiceDetailGrain", where)
    names = {"invoice_issuer": "InvoiceIssuerName", "invoice_detail_id": "InvoiceDetailId"}
    names |= {"account_id": "BillingAccountId", "issued_at": "InvoiceIssueDate", "invoiced_cost": "BilledCost"}
    yield values_of(row, where, SCHEMA, **names) | {
        "invoice_evidence": FOCUS,
        "invoice_id": invoice_id,
        "billing_month": started_at and started_at.date().replace(day=1),
        "billing_entity": answers.text(grain, "x_BillingEntity"),
        # An invoice that adjusts none references itself.
        "document_kind": "invoice" if reference == invoice_id else "correction",
        "issue_status": status,
        "reference_invoice_id": None if reference == invoice_id else reference,
        "currency": _currency(answers.text(row, "BillingCurrency"), where),
        # Our own export of a document without lines names the part of its total.
        "line_group": answers.text(grain, "x_LineGroup") or answers.text(row, "ChargeCategory"),
        "updated_at": answers.moment(row, "InvoiceDetailLastUpdated", where),
    }


def _period(row: Entry, where: str) -> Iterator[Row]:
    """A billing period of FOCUS 1.4: closed once its issuer has issued all invoices. It has no invoice and no cost."""
    status, started_at = answers.text(row, "BillingPeriodStatus"), answers.moment(row, "BillingPeriodStart", where)
    if status not in _CLOSINGS or started_at is None or not answers.text(row, "InvoiceIssuerName"):
        raise MalformedError(
            f"{where} needs a BillingPeriodStart, an InvoiceIssuerName and the BillingPeriodStatus Open or Closed."
        )
    month = started_at.date().replace(day=1)
    yield {
        "invoice_evidence": FOCUS,
        "invoice_issuer": answers.text(row, "InvoiceIssuerName"),
        "invoice_id": "",
        # Of an issuer, one for each month.
        "invoice_detail_id": f"{month:%Y-%m}",
        "billing_month": month,
        "document_kind": "billing_period",
        "issue_status": _CLOSINGS[status],
        "currency": "",
        "line_group": "",
        "invoiced_cost": Decimal(0),
        "updated_at": answers.moment(row, "BillingPeriodLastUpdated", where),
    }


def _summary(summary: Entry, where: str, lacking: list[str]) -> Iterator[Row]:
    """The parts of an invoice of ListInvoiceSummaries; `lacking` gets those without a kind."""
    entity, period = (_part(summary, name, where) for name in ("Entity", "BillingPeriod"))
    costs = _part(summary, "BaseCurrencyAmount", where)
    if "BillingEntity" not in entity or "BillType" not in summary:
        lacking.append(where)
    kind = str(summary.get("InvoiceType") or "INVOICE").lower()
    if kind == "invoice":
        kind = _KINDS.get(str(summary.get("BillType") or "ANNIVERSARY"), "invoice")
    if summary.get("CommercialInvoiceId"):
        kind = "tax_copy"
    year, month = (answers.count(period, name, where, "years or months") for name in ("Year", "Month"))
    reference = answers.text(summary, "OriginalInvoiceId")
    yield from _parts(
        answers.amount(costs, "TotalAmount", where),
        answers.amount(costs, "TotalAmountBeforeTax", where),
        where,
        invoice_evidence=API,
        invoice_issuer=answers.text(entity, "InvoicingEntity"),
        invoice_id=answers.text(summary, "InvoiceId"),
        account_id=answers.text(summary, "AccountId"),
        billing_month=datetime(year, month, 1).date() if year and month and 1 <= month <= 12 else None,
        billing_entity=_ENTITIES.get(str(entity.get("BillingEntity")), answers.text(entity, "BillingEntity")),
        document_kind=kind,
        issued_at=answers.moment(summary, "IssuedDate", where),
        reference_invoice_id=answers.text(summary, "CommercialInvoiceId")
        or (None if reference == summary.get("InvoiceId") else reference),
        currency=answers.text(costs, "CurrencyCode"),
    )


def _totals(row: Entry, where: str) -> Iterator[Row]:
    """The parts of an invoice typed into a csv."""
    total, tax = (answers.amount(row, name, where) for name in ("total", "tax"))
    issued = answers.text(row, "issued_date")
    at = {"issued_date": f"{issued}T00:00:00Z" if re.fullmatch(r"\d{4}-\d\d-\d\d", issued or "") else issued}
    yield from _parts(
        total,
        None if total is None or tax is None else total - tax,
        where,
        invoice_evidence=DECLARED,
        invoice_issuer=answers.text(row, "invoice_issuer"),
        invoice_id=answers.text(row, "invoice_id"),
        document_kind="invoice",
        issued_at=answers.moment(at, "issued_date", where, "a day such as 2026-08-03"),
        currency=answers.text(row, "currency"),
    )


def _parts(total: Decimal | None, before_tax: Decimal | None, where: str, **fields: Any) -> Iterator[Row]:
    """The lines `before tax` and `Tax` of a document, or `total` where its tax is unknown."""
    for name, value in {"invoice id": fields["invoice_id"], "currency": fields["currency"], "total": total}.items():
        if value is None:
            raise MalformedError(f"{where} has no {name}; add it.")
    assert total is not None
    _currency(fields["currency"], where)
    parts = {"total": total} if before_tax is None else {_TAX_PARTS[0]: before_tax, _TAX_PARTS[1]: total - before_tax}
    for group, cost in parts.items():
        yield fields | {"line_group": group, "invoiced_cost": cost, "issue_status": "issued"}


def _currency(code: str | None, where: str) -> str:
    if not code or not re.fullmatch("[A-Z]{3}", code):
        raise MalformedError(f"{where} has the currency {str(code)[:80]!r}; write its code of three capital letters.")
    return code


def _part(summary: Entry, name: str, where: str) -> Entry:
    part = summary.get(name) or {}
    if not isinstance(part, Mapping):
        raise MalformedError(f"{where}: {name} is not a JSON object; save the whole answer.")
    return part


def _newest(readings: Sequence[Row]) -> Row:
    """Of the readings of one line the one updated last; MalformedError where such readings differ."""
    dates = [row["updated_at"] for row in readings if row.get("updated_at") is not None]
    if len(dates) == len(readings):
        readings = [row for row in readings if row["updated_at"] == max(dates)]
    known = readings[0]
    for other in readings[1:]:
        if any(known.get(name) != other.get(name) for name in {*known, *other} - {"source_name", "where"}):
            raise MalformedError(_contradiction(known, other))
    return known


def _key(row: Row) -> tuple[Any, ...]:
    """What names a line: FOCUS its id, whatever its category is now; a document without lines the part of its total."""
    part = row["line_group"] if row.get("invoice_detail_id") is None else None
    return *(row.get(name) for name in _KEY[:-1]), part


def _contradiction(known: Row, other: Row) -> str:
    return (
        f"Invoice {known['invoice_id']} has other values in {known['where']} than in {other['where']}; keep "
        "the newer document."
    )


def _of_one_sign(lines: Sequence[Row], warnings: list[str]) -> Sequence[Row]:
    """The lines; without credit memos where they have both signs: which of them lowers what is owed is then unknown."""
    memos = [row for row in lines if row["document_kind"] == "credit_memo" and row["line_group"] != "Tax"]
    signs = {row["invoiced_cost"] > 0: row["invoice_id"] for row in memos if row["invoiced_cost"]}
    if len(signs) < 2:
        return lines
    warnings.append(
        f"Credit memos have both signs: {signs[True]} is positive and {signs[False]} negative; correct one of them. "
        "Until then all are left out."
    )
    return [row for row in lines if row["document_kind"] != "credit_memo"]
