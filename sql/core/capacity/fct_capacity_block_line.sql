-- One row per bill line of a Capacity Block or training plan: a fee, a refund, or an hour of it, used or not.
-- partition: billing_period
-- A block spans months, so its tables read these lines of all months.
select
    source_name, source_file, source_row,
    billing_period, billing_month, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    charge_category, line_class, service, region_id, market, resource_id, instance_type, accelerator_family,
    capacity_reservation_id, usage_started_at, usage_quantity, list_cost_usd, effective_cost_usd, billed_cost_usd
from fct_apportioned_charge
where line_class = 'block_fee' or (market = 'capacity_block' and line_class in ('instance', 'capacity_unused'))
