-- One row per day × payer × account × bucket × charge category × service × accelerator family × billing month × currency
-- × whether it has a list price, so that a plain sum of list costs is that of all that is priced.
-- What a commitment left unused is unknown, not zero, while the bill does not show what used some of its payer's fees.
with payer as (
    select billing_month, payer_account_id, currency as billing_currency, unallocated_fee_usd > 0 as is_use_missing
    from detail_billing_month
)

select
    usage_date, payer_account_id, account_id, bucket, charge_category, service, accelerator_family,
    billing_month, billing_currency, list_cost_usd is null as is_unpriced,
    sum(accelerator_hours) as accelerator_hours,
    sum(list_cost_usd) as list_cost_usd,
    case when bucket = 'commitment_unused' and payer.is_use_missing then nullif(sum(effective_cost_usd), 0)
        else sum(effective_cost_usd) end as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_ledger
left join payer using (billing_month, payer_account_id, billing_currency)
group by usage_date, payer_account_id, account_id, bucket, charge_category, service, accelerator_family, billing_month,
    billing_currency, list_cost_usd is null, payer.is_use_missing
