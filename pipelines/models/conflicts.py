"""A month of an account that two sources deliver is refused before any table is built from it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.conflicts import shared_accounts
from pipelines.models.build import Builder
from pipelines.models.publish import Plan


def refuse_conflicts(builder: Builder, planned: Plan) -> None:
    """SourceError for the first month in which two sources deliver the same account.

    Looks at the months with a delivery that is not published yet and that several sources deliver.
    """
    bill = builder.warehouse.bill
    published = planned.publication.inputs["deliveries"] if planned.publication else ()
    known = {(made["source"], made["billing_period"], made["fingerprint"]) for made in published}
    new = {
        found.billing_period
        for found in bill.deliveries
        if (found.source, found.billing_period, found.fingerprint) not in known
    }
    for month in sorted(new):
        delivered = bill.ingest(month)
        shared = shared_accounts(delivered).to_dicts() if len(delivered) > 1 else []
        if shared:
            raise SourceError(builder.pseudonyms.text(_message(builder, month, shared)))


def _message(builder: Builder, month: str, shared: list[dict[str, Any]]) -> str:
    first = shared[0]
    one, other = first["source_names"][:2]
    more = sum({one, other} <= set(row["source_names"]) for row in shared) - 1
    others = f" and {more} more account{'s' if more > 1 else ''}" if more else ""
    return (
        f"[[billing]] {one} and {other} both deliver {month} of account {first['account_id']} of payer "
        f"{first['payer_account_id']}{others}, so its costs would count twice; {_fix(builder, month, one, other)}."
    )


def _fix(builder: Builder, month: str, one: str, other: str) -> str:
    """What to change: the source with the older months keeps those before `month`."""
    deliveries = builder.warehouse.bill.deliveries
    since = {name: min(found.billing_period for found in deliveries if found.source == name) for name in (one, other)}
    old, new = sorted(since, key=lambda name: since[name])
    if since[old] == month:
        return "remove one of the two entries, or name the months each is read for with first_month and last_month"
    before = date.fromisoformat(f"{month}-01") - timedelta(days=1)
    return (
        f'name the months each is read for, such as last_month = "{before:%Y-%m}" for {old} and '
        f'first_month = "{month}" for {new}, or remove one of the two entries'
    )
