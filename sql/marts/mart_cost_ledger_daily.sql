-- One row per day × payer × account × bucket × charge category × service × accelerator family × billing month × currency
-- × whether it has a list price, so that a plain sum of list costs is that of all that is priced.
select
    usage_date, payer_account_id, account_id, bucket, charge_category, service, accelerator_family,
    billing_month, billing_currency, list_cost_usd is null as is_unpriced,
    sum(accelerator_hours) as accelerator_hours,
    sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_ledger
group by all
