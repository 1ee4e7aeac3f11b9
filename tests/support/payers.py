"""Many payers, each a [[billing]] source: legacy reports and CUR 2.0 exports in turn, one tiny file a month."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.bills import next_month
from support.cur_exports import CUR2_LINE, LEGACY_LINE, csv_text, cur2_export, legacy_export, packed


def months_from(first: str, count: int) -> list[str]:
    """`count` months from `first` on, as YYYY-MM."""
    months = [first]
    while len(months) < count:
        months.append(next_month(months[-1]))
    return months


def write_payers(root: Path, count: int, months: Sequence[str]) -> Path:
    """Exports of `count` payers below `root`, named payer-0 and on, and a configuration that reads them all."""
    entries = ['[warehouse]\nlocation = "warehouse"\n']
    for number in range(count):
        for month in months:
            location = write_month(root / f"payer-{number}", number, month, is_legacy=number % 2 == 1)
        entries.append(f'[[billing]]\nname = "payer-{number}"\nlocation = "{location}"\n')
    config = root / "trainledger.toml"
    config.write_text("\n".join(entries))
    return config


def write_month(root: Path, payer: int, month: str, *, is_legacy: bool = False, account: int | None = None) -> Path:
    """One line of a month of a payer's account, in an export below `root`; the export's own folder."""
    ids = {"payer": f"{payer:012d}", "account": f"{payer + 100 if account is None else account:012d}"}
    delivery = f"{payer}-{month}-{ids['account']}"
    if is_legacy:
        line = LEGACY_LINE | {
            "bill/PayerAccountId": ids["payer"],
            "lineItem/UsageAccountId": ids["account"],
            "bill/BillingPeriodStartDate": f"{month}-01T00:00:00Z",
            "lineItem/UsageStartDate": f"{month}-01T00:00:00Z",
            "lineItem/UsageEndDate": f"{month}-01T01:00:00Z",
        }
        period = f"{month.replace('-', '')}01-{next_month(month).replace('-', '')}01"
        return legacy_export(root, {"a.csv.gz": packed(csv_text([line]))}, month=period, assembly=delivery)
    line = CUR2_LINE | {
        "bill_payer_account_id": ids["payer"],
        "line_item_usage_account_id": ids["account"],
        "bill_billing_period_start_date": f"{month}-01T00:00:00.000Z",
        "line_item_usage_start_date": f"{month}-01T00:00:00.000Z",
        "line_item_usage_end_date": f"{month}-01T01:00:00.000Z",
    }
    execution = f"20260801T000000Z-{delivery}"
    return cur2_export(root, {"a.csv.gz": packed(csv_text([line]))}, month=month, execution=execution)
