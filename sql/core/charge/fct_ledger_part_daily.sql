-- One row per delivered month, day of use and set of attributes of all charges but the fees of Capacity Blocks, each dollar in one bucket.
-- partition: billing_period
-- The parts of fct_ledger_daily that one delivered month makes.
with entry as (
    select billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
        billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id,
        case when bucket = 'run' then 'tag' end as evidence, resource_id,
        -- Elsewhere it is kept for reserved capacity, and would only lengthen the ledger.
        case when source_row is not null or bucket = 'unattributed' or accelerator_family = 'unknown' then instance_type end
            as instance_type,
        tag_owner, tag_team, tag_run_id,
        accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_charge
    where bucket is not null

    union all

    select billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
        billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id, evidence,
        case when bucket in ('idle', 'unattributed') then resource_id end, instance_type, tag_owner, tag_team, tag_run_id,
        accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_charge_piece

    union all

    select billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
        billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id, evidence,
        null, null, case when bucket = 'shared' then tag_owner end, case when bucket = 'shared' then tag_team end, null,
        0 as accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_attached_piece
)

select
    billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
    billing_currency, bucket, charge_category, service, region_id, accelerator_family, market, run_id, evidence,
    resource_id, instance_type, tag_owner, tag_team, tag_run_id,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from entry
group by all
