-- One row per day × payer × account × bucket × charge category × service × accelerator family × billing month × currency.
select
    usage_date, payer_account_id, account_id, bucket, charge_category, service, accelerator_family,
    billing_month, billing_currency,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_ledger
group by all
