-- One row per piece of a shared bill line: the part of it one run used, or the rest.
-- partition: billing_period
select
    line.source_name, line.source_file, line.source_row, share.share_no as piece_no,
    line.billing_period, line.billing_month, line.payer_account_id, line.account_id,
    line.invoice_id, line.billing_entity, line.invoice_issuer, line.billing_currency,
    share.bucket, line.charge_category, line.service, line.region_id, line.market,
    line.resource_id, line.instance_type, line.accelerator_family,
    cast(line.usage_started_at as date) as usage_date,
    share.hour_started_at,
    share.run_id, share.attempt_no, share.evidence, share.started_ms, share.ended_ms,
    piece_usd(line.usage_quantity * line.accelerator_count, share.lower_units, share.upper_units, share.billed_units)
        as accelerator_hours,
    piece_usd(line.list_cost_usd, share.lower_units, share.upper_units, share.billed_units) as list_cost_usd,
    piece_usd(line.effective_cost_usd, share.lower_units, share.upper_units, share.billed_units) as effective_cost_usd,
    piece_usd(line.billed_cost_usd, share.lower_units, share.upper_units, share.billed_units) as billed_cost_usd,
    line.tag_run_id, line.tag_owner, line.tag_team
from fct_apportioned_charge as line
join fct_resource_share_hourly as share
    on share.resource_id = line.resource_id and share.hour_started_at = line.usage_started_at
where line.line_class = 'instance'
