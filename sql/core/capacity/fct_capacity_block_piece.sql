-- One row per piece of a Capacity Block fee or refund: the part one run used in an hour, the idle rest, or an unused hour.
-- The fee is charged whole at purchase, often a month before, and the hours at nothing (facts 3.5). Here it is spread evenly over the
-- hours of the block, on their own days, used or not. Without hours it stays on its day, unused.
with hourly as (
    select
        fee.*, hour.resource_id, coalesce(hour.hour_started_at, fee.usage_started_at) as hour_started_at,
        coalesce(hour.is_unused, true) as is_unused,
        coalesce(hour.is_overused, false) as is_overused,
        case when hour.block_id is null then fee.list_cost_usd
            else piece_usd(fee.list_cost_usd, hour.lower_units, hour.upper_units, hour.whole_units) end as hour_list_cost_usd,
        case when hour.block_id is null then fee.effective_cost_usd
            else piece_usd(fee.effective_cost_usd, hour.lower_units, hour.upper_units, hour.whole_units) end as hour_effective_cost_usd,
        case when hour.block_id is null then fee.billed_cost_usd
            else piece_usd(fee.billed_cost_usd, hour.lower_units, hour.upper_units, hour.whole_units) end as hour_billed_cost_usd,
        row_number() over (partition by fee.source_name, fee.billing_period, fee.source_file, fee.source_row
            order by hour.hour_started_at, hour.is_unused, hour.resource_id) as hour_no
    from fct_capacity_block_fee as fee
    left join fct_capacity_block_use_hourly as hour on hour.block_id = fee.block_id
),

-- Used alone, or still running: what it holds is not on the bill, and its fee is spread over too few hours.
unknown as (
    select held.block_id
    from fct_capacity_block_use_hourly as held
    anti join stg_aws__capacity_reservation as known
        on known.reservation_id = held.block_id and known.started_at is not null and known.ended_at is not null
    where held.window_ended_at is null
    group by held.block_id
    having not bool_or(held.is_unused) or cast(max(held.hour_started_at) as date)
        >= (select max(usage_date) from fct_charge where charge_category = 'Usage')
)

select
    hourly.source_name, hourly.source_file, hourly.source_row, hourly.hour_no, coalesce(share.share_no, 0) as piece_no,
    hourly.billing_period, hourly.billing_month, hourly.payer_account_id, hourly.account_id,
    hourly.invoice_id, hourly.billing_entity, hourly.invoice_issuer, hourly.billing_currency,
    case when hourly.is_unused then 'capacity_unused' else coalesce(share.bucket, 'unattributed') end as bucket,
    hourly.charge_category, hourly.service, hourly.region_id, 'capacity_block' as market, hourly.block_id, hourly.is_overused,
    unknown.block_id is not null as is_window_unknown,
    hourly.resource_id, hourly.instance_type, hourly.accelerator_family,
    cast(hourly.hour_started_at as date) as usage_date, hourly.hour_started_at,
    share.run_id, share.attempt_no, share.server_id, share.evidence, share.tag_run_id, share.started_ms, share.ended_ms,
    case when share.share_no is null then hourly.hour_list_cost_usd
        else piece_usd(hourly.hour_list_cost_usd, share.lower_units, share.upper_units, share.billed_units) end as list_cost_usd,
    case when share.share_no is null then hourly.hour_effective_cost_usd
        else piece_usd(hourly.hour_effective_cost_usd, share.lower_units, share.upper_units, share.billed_units) end as effective_cost_usd,
    case when share.share_no is null then hourly.hour_billed_cost_usd
        else piece_usd(hourly.hour_billed_cost_usd, share.lower_units, share.upper_units, share.billed_units) end as billed_cost_usd
from hourly
-- An hour that a later month bills too is shared as the first of them has it.
left join (
    select * from fct_resource_share_hourly where resource_id in (select resource_id from fct_capacity_block_use_hourly)
    qualify dense_rank() over (partition by resource_id, hour_started_at order by billing_period) = 1
) as share
    on share.resource_id = case when not hourly.is_unused then hourly.resource_id end
    and share.hour_started_at = hourly.hour_started_at
left join unknown on unknown.block_id = hourly.block_id
