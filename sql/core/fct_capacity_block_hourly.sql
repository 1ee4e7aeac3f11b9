-- One row per Capacity Block fee line and hour of the block: the part of the fee that hour costs.
-- The fee is charged whole at purchase, often a month before, and the hours themselves at nothing (facts 3.5);
-- here it falls evenly on every hour the block was billed, used or not. Without hours it stays on its day, unused.
with fee as (
    select *, coalesce(capacity_reservation_id, 'line ' || source_file || ' ' || cast(source_row as varchar)) as block_id
    from fct_apportioned_charge
    where line_class = 'block_fee'
),

declared as (
    select resource_id, max(capacity_reservation_id) as capacity_reservation_id
    from fct_run_resource_monthly
    where capacity_reservation_id is not null
    group by resource_id
),

-- Where neither the bill nor the run names the block, it is the only one its account bought of that type.
only_block as (
    select account_id, instance_type, max(block_id) as block_id
    from fee
    group by account_id, instance_type
    having count(distinct block_id) = 1
),

block_hour as (
    select
        coalesce(line.capacity_reservation_id, declared.capacity_reservation_id, only_block.block_id) as block_id,
        line.resource_id,
        line.usage_started_at as hour_started_at,
        line.line_class = 'capacity_unused' as is_unused,
        cast(round(sum(line.usage_quantity) * 3600000) as bigint) as billed_ms
    from fct_apportioned_charge as line
    left join declared on declared.resource_id = line.resource_id
    left join only_block on only_block.account_id = line.account_id and only_block.instance_type = line.instance_type
    where line.market = 'capacity_block' and line.line_class in ('instance', 'capacity_unused')
    group by 1, 2, 3, 4
),

cut as (
    select
        *,
        sum(billed_ms) over (partition by block_id order by hour_started_at, resource_id, is_unused
            rows between unbounded preceding and current row) as upto_ms,
        sum(billed_ms) over (partition by block_id) as whole_ms
    from block_hour
    where block_id is not null and billed_ms > 0
)

select
    fee.source_name, fee.source_file, fee.source_row,
    fee.billing_period, fee.billing_month, fee.payer_account_id, fee.account_id,
    fee.invoice_id, fee.billing_entity, fee.invoice_issuer, fee.billing_currency,
    fee.charge_category, fee.service, fee.region_id, fee.instance_type, fee.accelerator_family, fee.block_id,
    cut.resource_id,
    coalesce(cut.hour_started_at, fee.usage_started_at) as hour_started_at,
    coalesce(cut.is_unused, true) as is_unused,
    case when cut.block_id is null then fee.list_cost_usd
        else piece_usd(fee.list_cost_usd, cut.upto_ms - cut.billed_ms, cut.upto_ms, cut.whole_ms) end as list_cost_usd,
    case when cut.block_id is null then fee.effective_cost_usd
        else piece_usd(fee.effective_cost_usd, cut.upto_ms - cut.billed_ms, cut.upto_ms, cut.whole_ms) end as effective_cost_usd,
    case when cut.block_id is null then fee.billed_cost_usd
        else piece_usd(fee.billed_cost_usd, cut.upto_ms - cut.billed_ms, cut.upto_ms, cut.whole_ms) end as billed_cost_usd,
    row_number() over (partition by fee.source_name, fee.billing_period, fee.source_file, fee.source_row
        order by cut.hour_started_at, cut.resource_id, cut.is_unused) as hour_no
from fee
left join cut on cut.block_id = fee.block_id
