-- One row per fee or refund line of a Capacity Block or training plan and hour and user of it: its part of the line.
-- The fee is charged whole at purchase, often a month before, and the hours themselves at nothing (facts 3.5); here it
-- falls evenly on the hours of the block, on their own days, used or not. Without hours it stays on its day, unused.
select
    fee.source_name, fee.source_file, fee.source_row,
    fee.billing_period, fee.billing_month, fee.payer_account_id, fee.account_id,
    fee.invoice_id, fee.billing_entity, fee.invoice_issuer, fee.billing_currency,
    fee.charge_category, fee.service, fee.region_id, fee.instance_type, fee.accelerator_family, fee.block_id,
    hour.resource_id,
    coalesce(hour.hour_started_at, fee.usage_started_at) as hour_started_at,
    coalesce(hour.is_unused, true) as is_unused,
    coalesce(hour.is_overused, false) as is_overused,
    case when hour.block_id is null then fee.list_cost_usd
        else piece_usd(fee.list_cost_usd, hour.lower_units, hour.upper_units, hour.whole_units) end as list_cost_usd,
    case when hour.block_id is null then fee.effective_cost_usd
        else piece_usd(fee.effective_cost_usd, hour.lower_units, hour.upper_units, hour.whole_units) end as effective_cost_usd,
    case when hour.block_id is null then fee.billed_cost_usd
        else piece_usd(fee.billed_cost_usd, hour.lower_units, hour.upper_units, hour.whole_units) end as billed_cost_usd,
    row_number() over (partition by fee.source_name, fee.billing_period, fee.source_file, fee.source_row
        order by hour.hour_started_at, hour.is_unused, hour.resource_id) as hour_no
from fct_capacity_block_fee as fee
left join fct_capacity_block_use_hourly as hour on hour.block_id = fee.block_id
