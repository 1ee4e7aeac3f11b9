"""The small company with a second billing source in July: another payer's export, or another one of the same payer."""

from __future__ import annotations

from pathlib import Path

from support.bills import instance_hour, write_export
from support.small_company import JULY, Company, found

# Its own payer bills the same account after it moved there, and with it the instance of a run; or the first one does.
PAYERS = {"apart": ("999900001111", "000033334444"), "shared": ("000011112222", "999900002222")}


def two_payers(root: Path, payers: str, rate: str = "55.04") -> Company:
    """The small company, whose GPU runs on for an hour that a second source bills in July."""
    company = found(root)
    payer, account = PAYERS[payers]
    whose = {"bill_payer_account_id": payer, "line_item_usage_account_id": account}
    resource = "i-gpu" if payers == "apart" else "i-other"
    lines = [instance_hour(f"{JULY}-10T{hour}", resource, "p5.48xlarge", rate, **whose) for hour in (12, 13)]
    write_export(root, {JULY: lines}, name="other", execution=f"20260901T000000Z-{rate}")
    config = company.config.read_text()
    if 'name = "other"' not in config:
        company.config.write_text(f'{config}\n[[billing]]\nname = "other"\nlocation = "{root / "other"}"\n')
    return company
