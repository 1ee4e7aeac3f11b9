"""Discounts and refunds of its months that the cost of a run lacks: one side of a comparison may be before them."""

from collections.abc import Iterator

from pipelines.transforms import Rows

# On lines of their own, for machines of a kind or, of discounts, for a service whole; the enterprise discount is the
# same for all of a service. In lines without net columns. On what commitments cover, whose own net column is empty:
# their dollars are unknown.
QUERIES = {
    "fct_charge_sum_monthly": """
        with discount as (
            select payer_account_id, billing_month, billing_currency, nullif(accelerator_family, 'none') as family,
                case when accelerator_family = 'none' then service end as whole_service, null as covered_by,
                'discounts' as kind, sum(effective_cost_usd) as lacking_usd
            from fct_charge_sum_monthly
            where charge_category = 'Discount' and (accelerator_family <> 'none' or charge_type <> 'EdpDiscount')
            group by all
            union all
            select payer_account_id, cast(date_trunc('month', usage_date) as date), billing_currency,
                accelerator_family, null, null, lower(charge_category) || 's', sum(effective_cost_usd)
            from fct_ledger_piece
            where charge_category in ('Refund', 'Adjustment') and accelerator_family <> 'none'
            group by all
            union all
            select payer_account_id, billing_month, billing_currency, null, null, null, 'discounts',
                in_line_discount_usd
            from fct_bill_total_monthly
            where not has_net_costs
            union all
            select payer_account_id, billing_month, billing_currency, null, null,
                replace(effective_rule, 'reservation', 'reserved'), 'discounts', null
            from stg_aws__invoice_total
            join fct_bill_total_monthly as bill using (payer_account_id, billing_month, billing_currency)
            where bill.has_net_costs and effective_rule in ('savings_plan', 'reservation')
            group by all
            having sum(net_value_count) = 0
        ),
        lacked as (
            select distinct run_id, accelerator_family, discount.*
            from fct_ledger_piece
            join discount using (payer_account_id, billing_month, billing_currency)
            where bucket = 'run' and accelerator_family = coalesce(family, nullif(accelerator_family, 'none'))
                and service = coalesce(whole_service, service) and market = coalesce(covered_by, market)
        )
        select run_id, billing_month, billing_currency, accelerator_family, kind, sum(lacking_usd) as lacking_usd
        from lacked
        where coalesce(lacking_usd, 1) <> 0
        group by all
        order by all"""
}


def undiscounted(discounts: Rows) -> Iterator[str]:
    """That the cost of a run lacks discounts or refunds; `discounts` has a row for each month and kind with any."""
    for row in discounts:
        family, usd = {"gpu": "GPU"}.get(row["accelerator_family"], "Trainium"), row["lacking_usd"]
        why = "the bill has no net columns of them" if row["kind"] == "discounts" else "they are lines of their own"
        lacks = "under commitments is before discounts"
        if usd is not None:
            lacks = f"lacks {row['kind']}, {row['billing_currency']} {abs(usd):,.2f}"
        yield f"the cost of {family} runs in {row['billing_month']:%B %Y} {lacks}: {why}"
