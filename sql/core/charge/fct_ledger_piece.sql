-- One row per piece of a delivered month's charges: a day's sum of whole lines, the share of a run in a line, or the rest of it.
-- partition: billing_period
-- The ledger but for the fees of Capacity Blocks: those fall on hours of other months too, and join in fct_ledger.
select
    billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    'whole' as piece_kind, cast(null as varchar) as source_name, cast(null as varchar) as source_file, cast(null as bigint) as source_row,
    cast(0 as bigint) as piece_no, bucket, charge_category, service, region_id, accelerator_family, market,
    run_id, cast(null as bigint) as attempt_no, case when bucket = 'run' then 'tag' end as evidence, resource_id,
    -- Elsewhere it is kept for reserved capacity, and would only lengthen the ledger.
    case when source_row is not null or bucket = 'unattributed' or accelerator_family = 'unknown' then instance_type end as instance_type,
    tag_owner, tag_team, tag_run_id, cast(null as timestamp) as hour_started_at,
    cast(null as bigint) as started_ms, cast(null as bigint) as ended_ms, cast(null as bigint) as used_units, cast(null as bigint) as billed_units,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_charge
where bucket is not null
group by all

union all

select
    line.billing_period, line.billing_month, line.usage_date, line.payer_account_id, line.account_id, line.invoice_id, line.billing_entity,
    line.invoice_issuer, line.billing_currency, 'instance_hour', line.source_name, line.source_file, line.source_row,
    share.share_no, share.bucket, line.charge_category, line.service, line.region_id, line.accelerator_family, line.market,
    share.run_id, share.attempt_no, share.evidence, line.resource_id, line.instance_type, line.tag_owner, line.tag_team, line.tag_run_id,
    share.hour_started_at, share.started_ms, share.ended_ms, share.upper_units - share.lower_units, share.billed_units,
    piece_usd(line.usage_quantity * line.accelerator_count, share.lower_units, share.upper_units, share.billed_units),
    piece_usd(line.list_cost_usd, share.lower_units, share.upper_units, share.billed_units),
    piece_usd(line.effective_cost_usd, share.lower_units, share.upper_units, share.billed_units),
    piece_usd(line.billed_cost_usd, share.lower_units, share.upper_units, share.billed_units)
from fct_charge as line
join fct_resource_share_hourly as share
    on share.resource_id = line.resource_id and share.hour_started_at = line.usage_started_at
where line.line_class = 'instance'

union all

select
    billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    'attached', source_name, source_file, source_row, piece_no, bucket, charge_category, service, region_id, accelerator_family, market,
    run_id, attempt_no, evidence, resource_id, null, case when bucket = 'shared' then tag_owner end,
    case when bucket = 'shared' then tag_team end, null, hour_started_at, started_ms, ended_ms, used_units, billed_units,
    0, list_cost_usd, effective_cost_usd, billed_cost_usd
from fct_attached_piece
