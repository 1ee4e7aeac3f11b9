-- One row per bill line that is shared out over time, and per day and set of attributes of the lines that are not.
-- partition: billing_period
-- One pass over the bill: a line that is shared out keeps its identity, the others are summed. What a charge is, its kind tells
-- (stg_aws__charge_kind): lines are grouped by its number, which costs a third less than by sixteen words.
with charge as (
    select
        charge_kind_no, usage_date, account_id, bucket, commitment_discount_id,
        case when bucket = 'run' then named_run_id end as run_id,
        case when is_shared_out or bucket = 'unattributed' then resource_id end as resource_id,
        -- An accelerator that no list has is told by name.
        case when is_shared_out or bucket = 'unattributed' or accelerator_family = 'unknown'
            or (capacity_reservation_id is not null and line_class <> 'capacity_marker') then instance_type end as instance_type,
        case when is_shared_out or bucket in ('unattributed', 'idle', 'shared') then tag_owner end as tag_owner,
        case when is_shared_out or bucket in ('unattributed', 'idle', 'shared') then tag_team end as tag_team,
        case when is_shared_out or bucket in ('unattributed', 'idle') then tag_run_id end as tag_run_id,
        source_name,
        case when is_shared_out then source_file end as source_file,
        case when is_shared_out then source_row end as source_row,
        case when is_shared_out then line_class end as line_class,
        case when is_shared_out then accelerator_count end as accelerator_count,
        case when line_class <> 'capacity_marker' then capacity_reservation_id end as capacity_reservation_id,
        -- Commitments are charged and capacity is reserved by the hour.
        case when is_shared_out or effective_rule in ('savings_plan_unused', 'reservation_unused')
            or (capacity_reservation_id is not null and line_class <> 'capacity_marker') then usage_started_at end
            as usage_started_at,
        -- Fees of commitments lie in the future too; an open month is cut by these two.
        case when line_class = 'attached' or effective_rule in ('savings_plan_unused', 'reservation_unused') then usage_ended_at end
            as usage_ended_at,
        case when is_shared_out then usage_quantity end as usage_quantity,
        storage_bucket_id,
        -- Whether a line can carry a tag, and which it has: they cost less than four sums more.
        charge_category = 'Usage' and resource_id is not null as is_taggable,
        charge_category = 'Usage' and resource_id is not null and tag_run_id is not null as has_run_id_tag,
        charge_category = 'Usage' and resource_id is not null and tag_owner is not null as has_owner_tag,
        charge_category = 'Usage' and resource_id is not null and tag_team is not null as has_team_tag,
        missing_hours(line_class, accelerator_family, usage_quantity, usage_started_at, usage_ended_at, effective_cost_usd)
            as missing_hours,
        -- What has a public price is not made unknown by what has none.
        commitment_eligibility is not null and list_cost_usd is null as is_unpriced,
        -- What Bedrock bills, its usage type tells.
        case when service like 'AmazonBedrock%' or million_tokens is not null then coalesce(usage_type, '') end as token_usage_type,
        sum(case when storage_bucket_id is not null then usage_quantity end) as stored_gib_months,
        cast(count(*) as bigint) as line_count,
        sum(case when (can_be_covered(commitment_eligibility) or capacity_reservation_id is not null)
            and line_class in ('instance', 'capacity_unused', 'warm_pool')
            then usage_quantity end) as instance_hours,
        sum(million_tokens) as million_tokens,
        sum(whole_line_hours(bucket, line_class, usage_quantity, accelerator_count)) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(amortised_cost_usd) as amortised_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from fct_charge_line
    group by all
)

select
    kind.billing_period, kind.billing_month, charge.usage_date, kind.payer_account_id, charge.account_id, kind.invoice_id, kind.billing_entity,
    kind.invoice_issuer, kind.billing_currency, charge.bucket, kind.charge_category, kind.charge_type, kind.is_known_charge_type,
    kind.effective_rule, kind.service, kind.region_id, kind.accelerator_family, kind.market, kind.kept_description as charge_description,
    charge.run_id, charge.resource_id, charge.instance_type, charge.commitment_discount_id, kind.commitment_eligibility,
    charge.tag_owner, charge.tag_team, charge.tag_run_id, charge.source_name, charge.source_file, charge.source_row, charge.line_class,
    charge.accelerator_count, charge.capacity_reservation_id, charge.usage_started_at, charge.usage_ended_at, charge.usage_quantity,
    charge.storage_bucket_id, charge.is_taggable, charge.has_run_id_tag, charge.has_owner_tag, charge.has_team_tag, charge.missing_hours,
    charge.is_unpriced, charge.token_usage_type, charge.stored_gib_months, charge.line_count, charge.instance_hours, charge.million_tokens,
    charge.accelerator_hours, charge.list_cost_usd, charge.amortised_cost_usd, charge.effective_cost_usd, charge.billed_cost_usd
from charge
join stg_aws__charge_kind as kind on kind.charge_kind_no = charge.charge_kind_no
