-- One row per bill line that is shared out over time, and per day and set of attributes of the lines that are not.
-- partition: billing_period
-- stored: no
-- The sums of lines with the words of their kind.
select
    line.billing_period, kind.billing_month, line.usage_date, kind.payer_account_id, line.account_id, kind.invoice_id, kind.billing_entity,
    kind.invoice_issuer, kind.billing_currency, line.bucket, kind.charge_category, kind.charge_type, kind.is_known_charge_type,
    kind.effective_rule, kind.service, kind.region_id, kind.accelerator_family, kind.market, kind.kept_description as charge_description,
    line.run_id, line.resource_id, line.instance_type, line.commitment_discount_id, kind.commitment_eligibility,
    line.tag_owner, line.tag_team, line.tag_run_id, line.source_name, line.source_file, line.source_row, line.line_class,
    line.accelerator_count, line.capacity_reservation_id, line.usage_started_at, line.usage_ended_at, line.usage_quantity,
    line.storage_bucket_id, line.is_taggable, line.has_run_id_tag, line.has_owner_tag, line.has_team_tag, line.missing_hours,
    line.is_unpriced, line.token_usage_type, line.stored_gib_months, line.line_count, line.instance_hours, line.million_tokens,
    line.accelerator_hours,
    -- Unknown where that of any line is.
    case when line.unpriced_line_count = 0 then line.list_cost_usd end as list_cost_usd,
    line.amortised_cost_usd, line.effective_cost_usd, line.billed_cost_usd
from fct_line_sum as line
join stg_aws__charge_kind as kind on kind.billing_period = line.billing_period and kind.charge_kind_no = line.charge_kind_no
