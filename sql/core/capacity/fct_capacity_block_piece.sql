-- One row per piece of a Capacity Block fee: the part one run used in an hour, the idle rest, or an unused hour.
select
    block.source_name, block.source_file, block.source_row,
    block.hour_no, coalesce(share.share_no, 0) as piece_no,
    block.billing_period, block.billing_month, block.payer_account_id, block.account_id,
    block.invoice_id, block.billing_entity, block.invoice_issuer, block.billing_currency,
    case when block.is_unused then 'capacity_unused' else coalesce(share.bucket, 'unattributed') end as bucket,
    block.charge_category, block.service, block.region_id, 'capacity_block' as market,
    block.resource_id, block.instance_type, block.accelerator_family,
    cast(block.hour_started_at as date) as usage_date,
    block.hour_started_at,
    share.run_id, share.attempt_no, share.evidence, share.started_ms, share.ended_ms,
    case when share.share_no is null then block.list_cost_usd
        else piece_usd(block.list_cost_usd, share.lower_units, share.upper_units, share.billed_units) end as list_cost_usd,
    case when share.share_no is null then block.effective_cost_usd
        else piece_usd(block.effective_cost_usd, share.lower_units, share.upper_units, share.billed_units) end as effective_cost_usd,
    case when share.share_no is null then block.billed_cost_usd
        else piece_usd(block.billed_cost_usd, share.lower_units, share.upper_units, share.billed_units) end as billed_cost_usd
from fct_capacity_block_hourly as block
left join fct_resource_share_hourly as share
    on not block.is_unused
    and share.resource_id = block.resource_id
    and share.hour_started_at = block.hour_started_at
