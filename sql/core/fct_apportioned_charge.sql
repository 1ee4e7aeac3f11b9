-- One row per bill line that is shared out over time: the instance-hours runs can use, and block fees.
-- partition: billing_period
with claimed as (
    select distinct resource_id from fct_run_resource_monthly
)

select
    line.source_name, line.source_file, line.source_row,
    line.billing_period, line.billing_month, line.payer_account_id, line.account_id, line.invoice_id, line.billing_currency,
    line.charge_category, line.line_class, line.service, line.region_id, line.market,
    line.resource_id, line.instance_type, line.accelerator_family, line.accelerator_count,
    line.capacity_reservation_id, line.usage_started_at, line.usage_quantity,
    line.list_cost_usd, line.effective_cost_usd, line.billed_cost_usd,
    line.tag_run_id, line.tag_owner, line.tag_team
from stg_aws__line_item as line
left join claimed on claimed.resource_id = line.resource_id
where is_apportioned(line.line_class, line.market, line.resource_id, line.accelerator_family, claimed.resource_id,
    line.usage_quantity, line.usage_started_at, line.usage_ended_at)
