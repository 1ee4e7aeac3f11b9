-- One row per bill line that is shared out over time, and per day and set of attributes of the lines that are not.
-- partition: billing_period
-- One pass over the bill: a line that is shared out keeps its identity, the others are summed.
with claimed as (
    select distinct resource_id from fct_run_resource_monthly
),

known_run as (
    select run_id, min(started_ms) as started_ms, max(ended_ms) as ended_ms
    from fct_run_attempt_monthly
    group by run_id
),

line as (
    select
        line.*,
        claimed.resource_id is not null as is_claimed,
        shared.service is not null as is_shared_service,
        known_run.run_id as named_run_id,
        is_apportioned(line.line_class, line.market, line.resource_id, line.accelerator_family, claimed.resource_id,
            line.usage_quantity, line.usage_started_at, line.usage_ended_at) as is_shared_out
    from stg_aws__line_item as line
    left join claimed on claimed.resource_id = line.resource_id
    left join ref_shared_service as shared on shared.service = line.service
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
            when is_shared_out and line_class <> 'capacity_unused' then null
            when line_class = 'capacity_unused' then 'capacity_unused'
            when effective_rule in ('savings_plan_unused', 'reservation_unused') then 'commitment_unused'
            when line_class = 'warm_pool' then 'idle'
            when charge_category = 'Usage' and named_run_id is not null then 'run'
            when line_class = 'instance' and accelerator_family <> 'none' then 'unattributed'
            when charge_category = 'Usage' and (is_shared_service
                or regexp_matches(coalesce(usage_type, ''), 'EBS:|NatGateway|DataTransfer|AWS-(In|Out)-Bytes')) then 'shared'
            else 'other'
        end as bucket
    from line
)

select
    billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_currency,
    bucket, charge_category, charge_type, is_known_charge_type, service, region_id, accelerator_family, market,
    case when bucket = 'run' then named_run_id end as run_id,
    case when is_shared_out or bucket = 'unattributed' then resource_id end as resource_id,
    case when is_shared_out or bucket = 'unattributed' then instance_type end as instance_type,
    case when is_shared_out or bucket in ('unattributed', 'idle') then tag_owner end as tag_owner,
    case when is_shared_out or bucket in ('unattributed', 'idle') then tag_team end as tag_team,
    case when is_shared_out or bucket in ('unattributed', 'idle') then tag_run_id end as tag_run_id,
    case when is_shared_out then source_name end as source_name,
    case when is_shared_out then source_file end as source_file,
    case when is_shared_out then source_row end as source_row,
    case when is_shared_out then line_class end as line_class,
    case when is_shared_out then accelerator_count end as accelerator_count,
    case when is_shared_out then capacity_reservation_id end as capacity_reservation_id,
    case when is_shared_out then usage_started_at end as usage_started_at,
    case when is_shared_out then usage_quantity end as usage_quantity,
    cast(count(*) as bigint) as line_count,
    sum(case when bucket in ('unattributed', 'capacity_unused') then usage_quantity * accelerator_count else 0 end)
        as accelerator_hours,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from bucketed
group by all
