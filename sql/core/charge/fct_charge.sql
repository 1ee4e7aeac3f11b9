-- One row per bill line that is shared out over time, and per day and set of attributes of the lines that are not.
-- partition: billing_period, source_name
-- One pass over the bill. A line that is shared out keeps its identity, and its pieces have the buckets; the others are
-- summed, each in its bucket. Lines are grouped by the key of their kind, and only the sums get its words.
with claimed as (
    -- A job's run may know its ARN or its name alone: both name the same job.
    select distinct coalesce(job_name(resource_id), resource_id) as claim_key
    from stg_tracker__stay_monthly
    where stay_kind in ('machine', 'storage')
),

known_run as (
    select run_id, min(started_ms) as started_ms, max(ended_ms) as ended_ms, min(has_one_spelling) as has_one_spelling
    from stg_tracker__stay_monthly
    where stay_kind = 'attempt'
    group by run_id
),

claimable as (
    select
        line.*, coalesce(known_run.run_id, respelled_run.run_id) as named_run_id,
        -- What runs had attached or mounted is theirs by the time they had it.
        line.line_class = 'other' and claimed.claim_key is not null as is_attached,
        is_apportioned(line.line_class, line.market, line.resource_id, line.accelerator_family, claimed.claim_key,
            line.usage_started_at, line.usage_ended_at) as is_timed
    from stg_aws__line_item as line
    left join claimed on claimed.claim_key
        = case when line.line_class = 'instance' then coalesce(job_name(line.resource_id), line.resource_id)
            when line.line_class = 'other' and line.charge_category = 'Usage'
                and line.usage_ended_at > line.usage_started_at then attached_id(line.resource_id, line.usage_type) end
    -- A tag alone is evidence only while the run it names was alive; another spelling names a run if it is the only one.
    -- Two joins: one with both spellings in its condition compares every line with every run.
    left join known_run
        on known_run.run_id = line.tag_run_id
        and unix_ms(line.usage_started_at) < known_run.ended_ms
        and unix_ms(line.usage_ended_at) > known_run.started_ms
    left join (select folded(run_id) as run_key, * from known_run where has_one_spelling) as respelled_run
        on respelled_run.run_key = folded(line.tag_run_id)
        and unix_ms(line.usage_started_at) < respelled_run.ended_ms
        and unix_ms(line.usage_ended_at) > respelled_run.started_ms
),

bucketed as (
    select
        *, is_timed or is_attached as is_shared_out,
        -- A line without time of its own is whole unless others of its hour have some (fct_ledger_piece).
        case when not is_attached and (not is_timed or line_class = 'capacity_unused'
                or (line_class = 'instance' and not has_time(usage_quantity)))
            then line_bucket(line_class, effective_rule, charge_category, accelerator_family, is_shared_usage,
                named_run_id) end as bucket,
        effective_rule in ('savings_plan_unused', 'reservation_unused') as is_commitment_fee,
        capacity_reservation_id is not null and line_class <> 'capacity_marker' as is_reserved,
        line_class in ('serving', 'serving_hour') as is_serving,
        charge_category = 'Usage' and resource_id is not null as is_taggable
    from claimable
),

summed as (
    select
        billing_period, charge_kind_id, usage_date, account_id, bucket, commitment_discount_id, source_name, is_taggable,
        case when bucket = 'run' then named_run_id end as run_id,
        case when is_shared_out or is_serving or bucket = 'unattributed' then resource_id end
            as resource_id,
        case when is_serving then iam_principal end as iam_principal,
        case when is_shared_out or accelerator_family <> 'none' or is_reserved or is_other_provider(billing_entity)
            then instance_type end as instance_type,
        case when is_shared_out or bucket in ('serving', 'unattributed', 'idle', 'shared') then tag_owner end
            as tag_owner,
        case when is_shared_out or bucket in ('serving', 'unattributed', 'idle', 'shared', 'other') then tag_team end
            as tag_team,
        case when is_shared_out or bucket in ('unattributed', 'idle', 'shared')
            or (bucket = 'run' and tag_run_id <> named_run_id) then tag_run_id end as tag_run_id,
        case when is_shared_out then source_file end as source_file,
        case when is_shared_out then source_row end as source_row,
        case when is_attached then 'attached' when is_timed then line_class end as line_class,
        case when is_shared_out then accelerator_count end as accelerator_count,
        case when is_shared_out then usage_quantity end as usage_quantity,
        case when is_reserved then capacity_reservation_id end as capacity_reservation_id,
        -- Commitments are charged and capacity is reserved by the hour, that of Bedrock too.
        case when is_shared_out or is_commitment_fee or is_reserved or (line_class = 'serving_hour'
            and date_diff('second', usage_started_at, usage_ended_at) <= 3600) then usage_started_at end as usage_started_at,
        -- Fees of commitments lie in the future too; an open month is cut by these two.
        case when is_attached or is_commitment_fee then usage_ended_at end as usage_ended_at,
        storage_bucket_id(resource_id, usage_type) as storage_bucket_id,
        is_taggable and tag_run_id is not null as has_run_id_tag,
        is_taggable and tag_owner is not null as has_owner_tag,
        is_taggable and tag_team is not null as has_team_tag,
        missing_hours(line_class, accelerator_family, usage_quantity, usage_started_at, usage_ended_at,
            effective_cost_usd) as missing_hours,
        -- What has a price, or a cost, is not made unknown by what has none.
        list_cost_usd is null as is_unpriced, effective_cost_usd is null as is_cost_unknown,
        cast(count(*) as bigint) as line_count,
        sum(case when charge_category = 'Usage' and storage_bucket_id(resource_id, usage_type) is not null
            then usage_quantity end) as stored_gib_months, -- a credit on stored bytes repeats their quantity
        sum(case when (can_be_covered(commitment_eligibility) or capacity_reservation_id is not null)
            and line_class in ('instance', 'capacity_unused', 'warm_pool') then usage_quantity end) as instance_hours,
        sum(case when is_serving then usage_quantity end) as metered_quantity,
        sum(whole_line_hours(bucket, line_class, usage_quantity, accelerator_count)) as accelerator_hours,
        sum(list_cost_usd) as list_cost_usd,
        sum(amortized_cost_usd) as amortized_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from bucketed
    group by all
)

select
    line.billing_period, kind.billing_month, line.usage_date, kind.payer_account_id, line.account_id, kind.invoice_id,
    kind.billing_entity, kind.invoice_issuer, kind.billing_currency, line.bucket, kind.charge_category,
    kind.charge_type, kind.is_known_charge_type, kind.effective_rule, kind.service, kind.region_id,
    kind.accelerator_family, kind.market, kind.kept_description as charge_description, line.run_id, line.resource_id,
    line.instance_type, line.commitment_discount_id, kind.commitment_eligibility, line.tag_owner, line.tag_team,
    line.tag_run_id, line.source_name, line.source_file, line.source_row, line.line_class, line.accelerator_count,
    line.capacity_reservation_id, line.usage_started_at, line.usage_ended_at, line.usage_quantity,
    line.storage_bucket_id, line.is_taggable, line.has_run_id_tag, line.has_owner_tag, line.has_team_tag,
    line.missing_hours, line.is_unpriced, line.is_cost_unknown, kind.bedrock_meter_id, line.iam_principal,
    line.stored_gib_months, line.line_count, line.instance_hours, line.metered_quantity,
    line.accelerator_hours, line.list_cost_usd, line.amortized_cost_usd, line.effective_cost_usd, line.billed_cost_usd
from summed as line
left join stg_aws__charge_kind as kind on kind.charge_kind_id = line.charge_kind_id
