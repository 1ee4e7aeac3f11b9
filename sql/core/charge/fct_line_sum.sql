-- One row per bill line that is shared out over time, and per day and set of attributes of the lines that are not, by number of kind.
-- partition: billing_period
-- One pass over the bill: a line that is shared out keeps its identity, the others are summed. What a charge is, its kind tells
-- (stg_aws__charge_kind): a number is compared faster than sixteen words, and fct_charge puts the words back.
with line as (
    select
        billing_period, charge_kind_no, usage_date, account_id, bucket, commitment_discount_id, source_name, storage_bucket_id,
        case when bucket = 'run' then named_run_id end as run_id,
        case when is_shared_out or bucket = 'unattributed' then resource_id end as resource_id,
        -- An accelerator that no list has is told by name.
        case when is_shared_out or bucket = 'unattributed' or accelerator_family = 'unknown'
            or (capacity_reservation_id is not null and line_class <> 'capacity_marker') then instance_type end as instance_type,
        case when is_shared_out or bucket in ('unattributed', 'idle', 'shared') then tag_owner end as tag_owner,
        case when is_shared_out or bucket in ('unattributed', 'idle', 'shared') then tag_team end as tag_team,
        case when is_shared_out or bucket in ('unattributed', 'idle') then tag_run_id end as tag_run_id,
        case when is_shared_out then source_file end as source_file,
        case when is_shared_out then source_row end as source_row,
        case when is_shared_out then line_class end as line_class,
        case when is_shared_out then accelerator_count end as accelerator_count,
        case when is_shared_out then usage_quantity end as usage_quantity,
        case when line_class <> 'capacity_marker' then capacity_reservation_id end as capacity_reservation_id,
        -- Commitments are charged and capacity is reserved by the hour.
        case when is_shared_out or effective_rule in ('savings_plan_unused', 'reservation_unused')
            or (capacity_reservation_id is not null and line_class <> 'capacity_marker') then usage_started_at end
            as usage_started_at,
        -- Fees of commitments lie in the future too; an open month is cut by these two.
        case when line_class = 'attached' or effective_rule in ('savings_plan_unused', 'reservation_unused') then usage_ended_at end
            as usage_ended_at,
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
        case when storage_bucket_id is not null then usage_quantity end as stored_gib_months,
        case when (can_be_covered(commitment_eligibility) or capacity_reservation_id is not null)
            and line_class in ('instance', 'capacity_unused', 'warm_pool') then usage_quantity end as instance_hours,
        whole_line_hours(bucket, line_class, usage_quantity, accelerator_count) as accelerator_hours,
        million_tokens, list_cost_usd, amortised_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_charge_line
)

select
    billing_period, charge_kind_no, usage_date, account_id, bucket, commitment_discount_id, run_id, resource_id, instance_type, tag_owner,
    tag_team, tag_run_id, source_name, source_file, source_row, line_class, accelerator_count, capacity_reservation_id, usage_started_at,
    usage_ended_at, usage_quantity, storage_bucket_id, is_taggable, has_run_id_tag, has_owner_tag, has_team_tag, missing_hours, is_unpriced,
    token_usage_type,
    cast(count(*) as bigint) as line_count,
    cast(count(*) - count(list_cost_usd) as bigint) as unpriced_line_count,
    sum(stored_gib_months) as stored_gib_months,
    sum(instance_hours) as instance_hours,
    sum(million_tokens) as million_tokens,
    sum(accelerator_hours) as accelerator_hours,
    sum(list_cost_usd) as list_cost_usd,
    sum(amortised_cost_usd) as amortised_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from line
group by all
