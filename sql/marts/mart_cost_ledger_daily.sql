-- One row per day × payer × account × bucket × charge category × service × region × accelerator family × team × owner tag
-- × billing month × currency × whether it has a list price and a known cost, so that a plain sum is that of all that is known.
-- What a commitment left unused is unknown, not zero, while the bill does not show what used some of its payer's fees.
with payer as (
    select billing_month, payer_account_id, currency as billing_currency, unallocated_fee_usd > 0 as is_use_missing
    from detail_billing_month
),

piece as (
    select ledger.*, case when ledger.bucket = 'commitment_unused' and payer.is_use_missing
            then nullif(ledger.effective_cost_usd, 0) else ledger.effective_cost_usd end as known_cost_usd
    from fct_ledger as ledger
    left join payer using (billing_month, payer_account_id, billing_currency)
)

select
    usage_date, payer_account_id, account_id, bucket, charge_category, service, region_id, accelerator_family,
    coalesce(team, 'no team') as team, coalesce(tag_owner, '') as tag_owner, billing_month, billing_currency,
    list_cost_usd is null as is_unpriced,
    known_cost_usd is null as is_cost_unknown,
    sum(accelerator_hours) as accelerator_hours,
    sum(list_cost_usd) as list_cost_usd,
    sum(known_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from piece
group by usage_date, payer_account_id, account_id, bucket, charge_category, service, region_id, accelerator_family,
    coalesce(team, 'no team'), coalesce(tag_owner, ''), billing_month, billing_currency, list_cost_usd is null,
    known_cost_usd is null
