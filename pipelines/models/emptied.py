"""A month that was published with lines may not lose them all without a word: every delivery is the month to date."""

from __future__ import annotations

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.models.build import Builder
from pipelines.models.publish import Plan

_HAD = """
    select billing_currency, cast(sum(line_count) as bigint) as line_count, sum(billed_cost_usd) as billed
    from (
        select * from published_restatement
        where source_name = '{source}' and billing_month = date '{month}-01'
        qualify delivery_no = max(delivery_no) over (partition by payer_account_id, billing_currency)
    ) as newest
    where line_count > 0
    group by billing_currency
    order by billing_currency
"""


def refuse_emptied(builder: Builder, planned: Plan) -> None:
    """SourceError for the first month asked for that was published with lines and is delivered without any.

    What a source's `empty_months` name really is empty now.
    """
    sources = {source.name: source for source in builder.warehouse.settings.billing}
    for month in planned.asked if planned.publication else ():
        for raw in builder.warehouse.bill.ingest(month):
            if not raw.line_count and month not in sources[raw.delivery.source].empty_months:
                _refuse(builder, raw, f"{sources[raw.delivery.source].location}/{raw.delivery.manifest_key}")


def _refuse(builder: Builder, raw: RawDelivery, manifest: str) -> None:
    delivery = raw.delivery
    with builder.open(["published_restatement"]) as engine:
        had = engine.query(_HAD.format(source=delivery.source, month=delivery.billing_period)).rows()
    if not had:
        return
    lines, billed = sum(row[1] for row in had), " and ".join(f"{row[2]:,.2f} {row[0]}" for row in had)
    raise SourceError(
        f"{manifest} {'holds no line' if delivery.objects else 'names no file'}, yet {delivery.billing_period} was "
        f"published with {lines:,} lines that bill {billed}; have the month delivered again, or add "
        f'empty_months = ["{delivery.billing_period}"] to its [[billing]] entry if it really is empty now.'
    )
