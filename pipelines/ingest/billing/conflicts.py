"""Two sources that deliver the same month: one delivery in two locations, or lines of the same account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import PurePosixPath

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.config.settings import BillingSource
from pipelines.ingest.billing.columns import CUR, FOCUS, Delivered, Source
from pipelines.ingest.billing.delivery import Delivery, RawDelivery
from pipelines.ingest.billing.select import alike

# Whom a line bills for which month, as the staging models read it: the first column that is filled.
_BILLED = {
    CUR: {
        "payer_account_id": ("bill_payer_account_id",),
        "account_id": ("line_item_usage_account_id",),
        "billing_month": ("bill_billing_period_start_date",),
    },
    FOCUS: {
        "payer_account_id": ("billing_account_id",),
        "account_id": ("sub_account_id", "billing_account_id"),
        "billing_month": ("billing_period_start",),
    },
}


_NOBODY = pl.DataFrame(
    schema={"payer_account_id": pl.String, "account_id": pl.String, "billing_month": pl.Date, "source_name": pl.String}
)


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


def shared_accounts(stored: Sequence[RawDelivery]) -> pl.DataFrame:
    """Each account of a payer that several of these deliveries of one month bill for the same month.

    Columns: payer_account_id, account_id, billing_month, source_names (sorted). Reads three columns of each file.
    """
    billed = pl.concat([frame for raw in stored for frame in _billed(raw)] or [_NOBODY])
    by_account = billed.group_by("payer_account_id", "account_id", "billing_month")
    shared = by_account.agg(source_names=pl.col("source_name").unique().sort())
    return shared.filter(pl.col("source_names").list.len() > 1).sort("payer_account_id", "account_id", "billing_month")


def _billed(raw: RawDelivery) -> list[pl.DataFrame]:
    """Whom a delivery bills, a frame of distinct rows for each group of its files."""
    listed, month = raw.delivery.listed, date.fromisoformat(f"{raw.delivery.billing_period}-01")
    frames = []
    for group in alike(raw.files):
        columns = group[0].columns
        found = listed.layout(columns, group[0].key).sources
        of = {name: [found[column] for column in tried] for name, tried in _BILLED[listed].items()}
        lines = pl.scan_parquet([raw.folder / file.name for file in group], glob=False, hive_partitioning=False)
        distinct = lines.select(
            _text(of["payer_account_id"], columns).alias("payer_account_id"),
            _text(of["account_id"], columns).alias("account_id"),
            pl.coalesce(*_dates(of["billing_month"], columns), pl.lit(month)).alias("billing_month"),
        ).unique()
        try:
            frames.append(distinct.collect(engine="streaming").with_columns(source_name=pl.lit(raw.delivery.source)))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise SourceError(
                f"{raw.folder} is damaged ({str(error).splitlines()[0]}); remove it and run `trainledger build`, which "
                "reads the delivery again."
            ) from None
    return frames


def _text(tried: Sequence[Sequence[Source]], columns: Sequence[Delivered]) -> pl.Expr:
    values = [pl.col(columns[at.position].name).cast(pl.String) for sources in tried for at in sources]
    return pl.coalesce(*(pl.when(value != "").then(value) for value in values), pl.lit(None, pl.String))


def _dates(tried: Sequence[Sequence[Source]], columns: Sequence[Delivered]) -> list[pl.Expr]:
    # Times are instants, and dates are those in UTC.
    return [pl.col(columns[at.position].name).cast(pl.Datetime("us")).cast(pl.Date) for found in tried for at in found]
