-- One row per day of use and set of attributes of everything on the bill, each dollar in one bucket.
with entry as (
    select billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
        billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id, evidence,
        resource_id, instance_type, tag_owner, tag_team, tag_run_id,
        accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_ledger_part_daily

    union all

    select billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
        billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id, evidence,
        case when bucket in ('idle', 'unattributed') then resource_id end, instance_type, null, null, null,
        0 as accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_capacity_block_piece
)

select
    billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
    billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id, evidence,
    resource_id, instance_type, tag_owner, tag_team, tag_run_id,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from entry
group by all
