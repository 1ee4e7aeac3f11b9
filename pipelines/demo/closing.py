"""The end of a billing month: discount, support, tax, credits and refunds; then invoices, or not yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from pipelines.demo import company
from pipelines.demo.lines import Line, charge_line, month_end, month_start, usd
from pipelines.demo.scenario import Account

DISCOUNTED = ("Usage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "SavingsPlanRecurringFee", "RIFee")
CLOSING = ("Tax", "Credit", "Refund")
_ACCOUNTS = {
    account.id: account for account in (company.PAYER, company.NLP, company.VISION, company.PLATFORM, company.SERVING)
}


def closing_lines(lines: list[Line], month: str) -> list[Line]:
    """What the end of the month adds to its usage."""
    start, end = month_start(month), month_end(month)
    discounts = list(_discounts(lines))
    spend = sum(line["line_item_unblended_cost"] for line in [*lines, *discounts])
    support = charge_line(
        "Fee",
        company.PAYER,
        "AWSSupportBusiness",
        start,
        end,
        usd(0.10 * min(spend, 10_000) + 0.07 * max(spend - 10_000, 0)),
        "AWS Support (Business)",
    )
    tool = charge_line(
        "Fee",
        company.PLATFORM,
        "4ktc9wq2exampletracker",
        start,
        end,
        company.MARKETPLACE_USD,
        "Experiment tracker, monthly subscription",
        bill_billing_entity="AWS Marketplace",
        line_item_legal_entity=company.MARKETPLACE_SELLER,
    )
    taxes = _taxes([*lines, *discounts, support], start, end)
    return [*discounts, support, tool, *taxes, *_returned(month)]


def _totals(lines: Iterable[Line], by_day: bool) -> dict[tuple[str, str, datetime | None], float]:
    totals: dict[tuple[str, str, datetime | None], float] = {}
    for line in lines:
        day = line["line_item_usage_start_date"].replace(hour=0) if by_day else None
        key = (line["line_item_usage_account_id"], line["line_item_product_code"], day)
        totals[key] = totals.get(key, 0.0) + line["line_item_unblended_cost"]
    return {key: total for key, total in sorted(totals.items()) if round(total, 6)}


def _discounts(lines: Iterable[Line]) -> Iterator[Line]:
    """The enterprise discount as rows of its own, one per account, service and day; net columns stay null."""
    eligible = (line for line in lines if line["line_item_line_item_type"] in DISCOUNTED)
    for (account_id, product_code, day), total in _totals(eligible, by_day=True).items():
        assert day is not None
        yield charge_line(
            "EdpDiscount",
            _ACCOUNTS[account_id],
            product_code,
            day,
            day + timedelta(days=1),
            -total * company.EDP_RATIO,
            "Enterprise Program Discount",
        )


def _taxes(lines: Iterable[Line], start: datetime, end: datetime) -> Iterator[Line]:
    for (account_id, product_code, _), total in _totals(lines, by_day=False).items():
        yield charge_line(
            "Tax",
            _ACCOUNTS[account_id],
            product_code,
            start,
            end,
            total * company.TAX_RATIO,
            f"Tax for product code {product_code}",
            line_item_tax_type="USSalesTax",
        )


def _returned(month: str) -> Iterator[Line]:
    for kind, entries in (("Credit", company.CREDITS), ("Refund", company.REFUNDS)):
        for billed_in, account, amount, day, description in entries:
            if billed_in == month:
                yield _money_back(kind, account, amount, day, description)


def _money_back(kind: str, account: Account, amount: float, day: datetime, description: str) -> Line:
    bill_type = "Refund" if kind == "Refund" else "Anniversary"
    return charge_line(
        kind,
        account,
        "AmazonEC2",
        day,
        day + timedelta(days=1),
        -amount,
        description,
        bill_bill_type=bill_type,
    )


def invoiced(lines: Iterable[Line], month: str) -> list[Line]:
    """The lines of a closed month, each on its invoice."""
    closed = []
    for line in lines:
        entity = line.get("bill_billing_entity", "AWS")
        bill_type = line.get("bill_bill_type", "Anniversary")
        invoice = company.INVOICES[month, entity if entity == "AWS Marketplace" else bill_type]
        closed.append(line | {"bill_invoice_id": invoice})
    return closed


def still_open(lines: Iterable[Line], known_until: datetime) -> list[Line]:
    """The lines as delivered before the month closed: late usage and closing charges absent, no invoices."""
    return [
        line
        for line in lines
        if line["line_item_line_item_type"] not in CLOSING
        and "Support" not in line["line_item_product_code"]
        and (
            line["line_item_usage_start_date"] < known_until
            or line["line_item_line_item_type"] == "SavingsPlanRecurringFee"
        )
    ]
