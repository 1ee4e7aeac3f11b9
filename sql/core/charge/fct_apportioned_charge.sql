-- One row per bill line that is shared out over time: the instance-hours runs can use, and block fees.
-- partition: billing_period
-- stored: no
select
    source_name, source_file, source_row,
    billing_period, billing_month, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    charge_category, line_class, service, region_id, market,
    resource_id, instance_type, accelerator_family, accelerator_count,
    capacity_reservation_id, usage_started_at, usage_quantity,
    list_cost_usd, effective_cost_usd, billed_cost_usd,
    tag_run_id, tag_owner, tag_team
from fct_charge
where source_row is not null and line_class <> 'attached'
