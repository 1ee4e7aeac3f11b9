"""Two sources that deliver the same month: one delivery in two locations, or lines of the same account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import polars as pl

from pipelines.base.errors import SourceError, TrainledgerError
from pipelines.config.sources import BillingSource
from pipelines.ingest.billing.columns import CUR, FOCUS
from pipelines.ingest.billing.delivery import Delivery, RawDelivery
from pipelines.ingest.billing.select import raw_select

if TYPE_CHECKING:
    from pipelines.engine import Engine
    from pipelines.ingest.billing.raw import RawBill

# Payer, account and month that a line bills, as the staging models read them.
_BILLED = {
    CUR: ("bill_payer_account_id", "line_item_usage_account_id", "bill_billing_period_start_date"),
    FOCUS: ("billing_account_id", "coalesce(sub_account_id, billing_account_id)", "billing_period_start"),
}


def refuse_copies(deliveries: Sequence[Delivery], sources: Mapping[str, BillingSource]) -> None:
    """SourceError when two deliveries of a month are the same, in two locations; reads none of their files."""
    first: dict[tuple, Delivery] = {}
    for delivery in deliveries:
        files = sorted((PurePosixPath(item.key).name, item.size) for item in delivery.objects)
        other = first.setdefault((delivery.delivery_id, *files), delivery)
        if other is not delivery and files:
            manifests = [f"{sources[found.source].location}/{found.manifest_key}" for found in (other, delivery)]
            raise SourceError(
                f"[[billing]] {other.source} and {delivery.source} read the same delivery of {delivery.billing_period} "
                f"({' and '.join(dict.fromkeys(manifests))}), so its lines would count twice; remove one of the two "
                "entries, or point its location at another export."
            )


def shared_accounts(stored: Sequence[RawDelivery], engine: Engine, bill: RawBill) -> pl.DataFrame:
    """Each account of a payer that several of these deliveries of one month bill for the same month.

    Columns: payer_account_id, account_id, billing_month, source_names (sorted). Reads three columns of each file.
    """
    billed = []
    for raw in stored:
        payer, account, month = _BILLED[raw.delivery.listed]
        select = raw_select([raw], {}, raw.delivery.listed)
        try:
            bill.scan(engine, select, [raw])
            lines = engine.query(
                f"select distinct {payer} as payer_account_id, {account} as account_id, "
                f"coalesce(cast({month} as date), date '{raw.delivery.billing_period}-01') as billing_month "
                f"from ({select.sql}) as line"
            )
        except TrainledgerError as error:
            fix = "remove it and run `trainledger build`, which reads the delivery again"
            raise SourceError(f"{raw.folder} is damaged ({error}); {fix}.") from None
        billed.append(lines.with_columns(source_name=pl.lit(raw.delivery.source)))
    key = ["payer_account_id", "account_id", "billing_month"]
    shared = pl.concat(billed).group_by(key).agg(source_names=pl.col("source_name").unique().sort())
    return shared.filter(pl.col("source_names").list.len() > 1).sort(key)
