-- One row per bill line, with the bucket it falls into; none where it is shared out over time.
-- partition: billing_period
-- stored: no
with claimed as (
    -- A job's run may know its ARN or its name alone: told by name it is one and the same.
    select distinct coalesce(job_name(resource_id), resource_id) as claim_key from fct_run_resource_monthly

    union all

    select distinct attached_id from fct_attached_stay_monthly where attached_id not like 'i-%'
),

known_run as (
    select run_id, min(started_ms) as started_ms, max(ended_ms) as ended_ms
    from fct_run_attempt_monthly
    group by run_id
),

line as (
    select
        line.*,
        known_run.run_id as named_run_id,
        -- What runs had attached or mounted is theirs by the time they had it.
        line.line_class = 'other' and claimed.claim_key is not null as is_attached,
        is_apportioned(line.line_class, line.market, line.resource_id, line.accelerator_family, claimed.claim_key,
            line.usage_quantity, line.usage_started_at, line.usage_ended_at) as is_shared_out
    from stg_aws__line_item as line
    left join claimed on claimed.claim_key
        = case when line.line_class = 'instance' then coalesce(job_name(line.resource_id), line.resource_id)
            when line.line_class = 'other' and line.charge_category = 'Usage' and line.usage_ended_at > line.usage_started_at
                then attached_id(line.resource_id, line.usage_type) end
    -- A tag alone is evidence only while the run it names was alive.
    left join known_run
        on known_run.run_id = line.tag_run_id
        and unix_ms(line.usage_started_at) < known_run.ended_ms
        and unix_ms(line.usage_ended_at) > known_run.started_ms
),

bucketed as (
    select
        *,
        case
            -- An unused hour of a Capacity Block takes its part of the fee, and keeps what it costs itself.
            when is_attached or (is_shared_out and line_class <> 'capacity_unused') then null
            when line_class = 'capacity_unused' then 'capacity_unused'
            when effective_rule in ('savings_plan_unused', 'reservation_unused') then 'commitment_unused'
            when line_class = 'warm_pool' then 'idle'
            when charge_category = 'Usage' and named_run_id is not null then 'run'
            -- Which instances of a dedicated host its price is for, the bill does not say.
            when line_class in ('instance', 'host') and accelerator_family <> 'none' then 'unattributed'
            when charge_category = 'Usage' and is_shared_usage then 'shared'
            else 'other'
        end as bucket
    from line
)

select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month, payer_account_id,
    account_id, invoice_id, billing_entity, invoice_issuer, billing_currency, charge_type, is_known_charge_type, charge_category,
    effective_rule, case when is_attached then 'attached' else line_class end as line_class, charge_description, service, usage_type,
    region_id, resource_id, instance_type, accelerator_family, accelerator_count, market, capacity_reservation_id, usage_started_at,
    usage_ended_at, usage_date, usage_quantity, commitment_discount_id, commitment_eligibility, million_tokens,
    list_cost_usd, amortised_cost_usd, effective_cost_usd, billed_cost_usd, tag_run_id, tag_owner, tag_team,
    is_shared_out or is_attached as is_shared_out, named_run_id, bucket, charge_kind_no,
    -- The bill names the bucket that stores, never the prefix or the object.
    case when usage_type like '%TimedStorage%' then regexp_extract(resource_id, '([^:/]+)$', 1) end
        as storage_bucket_id
from bucketed
