-- One row per bill line, or per piece of one that is shared out: the ledger before it is summed, for `explain`.
-- partition: billing_period
-- stored: no
with known_run as (
    select run_id, min(started_ms) as started_ms, max(ended_ms) as ended_ms, min(has_one_spelling) as has_one_spelling
    from stg_tracker__stay_monthly where stay_kind = 'attempt' group by run_id
),

shared as (select source_name, source_file, source_row, bucket from fct_charge where source_row is not null),

paid as (
    select distinct coalesce(capacity_reservation_id(resource_id), resource_id) as paid_id, usage_date
    from fct_capacity_block_piece where resource_id is not null and charge_category <> 'Refund'
),

-- As fct_charge has it, line by line.
line as (
    select line.*, coalesce(known_run.run_id, respelled_run.run_id) as named_run_id,
        case when shared.source_row is not null then shared.bucket
            else line_bucket(line.line_class, line.effective_rule, line.charge_category, line.accelerator_family,
                line.is_shared_usage, coalesce(known_run.run_id, respelled_run.run_id)) end as bucket
    from stg_aws__line_item as line left join shared using (source_name, source_file, source_row)
    left join known_run on known_run.run_id = line.tag_run_id
        and unix_ms(line.usage_started_at) < known_run.ended_ms and unix_ms(line.usage_ended_at) > known_run.started_ms
    left join (select folded(run_id) as run_key, * from known_run where has_one_spelling) as respelled_run
        on respelled_run.run_key = folded(line.tag_run_id)
        and unix_ms(line.usage_started_at) < respelled_run.ended_ms
        and unix_ms(line.usage_ended_at) > respelled_run.started_ms
),

piece as (
    select ledger.* from fct_ledger as ledger join this_month as month on month.billing_period = ledger.billing_period
    where ledger.piece_kind <> 'whole'
),

hour_user as (
    select resource_id, hour_started_at, count(distinct run_id) as run_count
    from piece where piece_kind = 'instance_hour' and bucket = 'run' group by resource_id, hour_started_at
),

entry as (
    select source_name, source_file, source_row, cast(0 as bigint) as hour_no, cast(0 as bigint) as piece_no,
        'whole' as piece_kind, line.usage_date, usage_started_at as hour_started_at, payer_account_id, account_id,
        invoice_id, billing_currency, billing_month, charge_category, service, region_id, accelerator_family, market,
        resource_id, instance_type, case when provisional.run_id is not null then 'run' else line.bucket end as bucket,
        coalesce(provisional.run_id, case when line.bucket = 'run' then named_run_id end) as run_id,
        cast(null as varchar) as server_id, cast(null as bigint) as attempt_no,
        case when provisional.run_id is not null then 'tag_only' when line.bucket = 'run' and tag_run_id = named_run_id
            then 'tag' when line.bucket = 'run' then 'tag_folded' end as evidence,
        cast(null as bigint) as used_units, cast(null as bigint) as billed_units, cast(0 as bigint) as run_count,
        whole_line_hours(line.bucket, line_class, usage_quantity, accelerator_count) as accelerator_hours,
        list_cost_usd, case when not is_unpaid_use(market, charge_category, 'whole', line.bucket, whole_line_hours(
            line.bucket, line_class, usage_quantity, accelerator_count), paid_id) then effective_cost_usd end
            as effective_cost_usd, billed_cost_usd
    from line
    left join paid on is_paid_by_block(paid, line)
    left join dim_provisional_run as provisional on is_of_provisional_run(provisional, line)
    anti join piece using (source_name, source_file, source_row) where line.bucket is not null

    union all

    select
        piece.source_name, piece.source_file, piece.source_row, piece.hour_no, piece.piece_no, piece.piece_kind,
        piece.usage_date, piece.hour_started_at, piece.payer_account_id, piece.account_id, piece.invoice_id,
        piece.billing_currency, piece.billing_month, piece.charge_category, piece.service, piece.region_id,
        piece.accelerator_family, piece.market, piece.resource_id, piece.instance_type, piece.bucket, piece.run_id,
        piece.server_id, piece.attempt_no, piece.evidence, piece.used_units, piece.billed_units,
        coalesce(hour_user.run_count, 0), piece.accelerator_hours, piece.list_cost_usd, piece.effective_cost_usd,
        piece.billed_cost_usd
    from piece
    left join hour_user on hour_user.hour_started_at = piece.hour_started_at
        and hour_user.resource_id = case when piece.piece_kind = 'instance_hour' then piece.resource_id end
)

select
    entry.source_name, line.delivery_id, entry.source_file, entry.source_row, entry.hour_no, entry.piece_no,
    line.billing_period, entry.billing_month, entry.usage_date, entry.hour_started_at, line.usage_ended_at,
    entry.payer_account_id, entry.account_id, entry.invoice_id, entry.billing_currency, entry.bucket,
    entry.charge_category, line.charge_type, entry.service, line.usage_type, entry.region_id, entry.accelerator_family,
    entry.market, entry.resource_id, entry.instance_type, entry.run_id, entry.server_id, kind.bedrock_meter_id,
    entry.attempt_no, entry.evidence,
    case when entry.effective_cost_usd is null then 'unknown until a delivered bill has the fee that pays for it'
        when line.charge_kind_id like 'focus %' and (line.effective_rule = 'as_billed' or (line.charge_type = 'Usage'
            and line.effective_rule in ('fee', 'upfront_fee'))) then 'the EffectiveCost of the line'
        else coalesce(cost_rule_meaning(line.effective_rule, line.line_class),
            'as billed: the charge type is not on a reference list') end as cost_rule_meaning,
    -- What the bucket, and the part of the line, rest on.
    case
        when entry.piece_kind = 'block_hour' then 'the part of the fee for this usage in this hour of the block'
        when entry.piece_kind = 'whole' then case entry.bucket
            when 'run' then 'whole line: a tag names ' || case when entry.evidence = 'tag_only'
                then 'an unrecorded run' else 'the run, which was alive then' end
            when 'unattributed' then 'whole line: accelerator hours without a resource to divide'
            when 'commitment_unused' then 'whole line: commitment fee; its effective cost is the unused part'
            when 'capacity_unused' then 'whole line: unused reserved capacity' when 'serving' then 'whole line: serves a model'
            when 'idle' then 'whole line: kept warm between jobs' when 'shared' then 'whole line: serves many runs'
            else 'whole line: not accelerator time or shared infrastructure' end
        else case
            when entry.bucket = 'unattributed' then 'no run names the resource:'
            when entry.evidence = 'tag_only' then 'its tag names an unrecorded run:'
            when entry.bucket = 'serving' then 'the server used'
            when entry.bucket = 'idle' and entry.server_id is not null then 'the server was up without a request:'
            when entry.bucket = 'idle' then 'no run used' when entry.bucket = 'shared' then 'no run held it:'
            when entry.piece_kind = 'attached' then 'the run held it:'
            when entry.run_count > 1 then cast(entry.run_count as varchar) || ' runs shared the hour:'
            else 'the run used'
        end || ' ' || seconds_of_ms(entry.used_units) || ' of ' || seconds_of_ms(entry.billed_units)
            || case when entry.accelerator_family = 'none' then ' seconds' else ' accelerator-seconds' end
    end as share_rule,
    case when entry.piece_kind = 'whole' then 1 else ratio(entry.used_units, entry.billed_units) end as share_ratio,
    entry.accelerator_hours, entry.list_cost_usd, entry.effective_cost_usd, entry.billed_cost_usd,
    line.list_cost_usd as line_list_cost_usd, line.effective_cost_usd as line_effective_cost_usd,
    line.billed_cost_usd as line_billed_cost_usd
from entry
join line using (source_name, source_file, source_row)
left join stg_aws__charge_kind as kind using (source_name, charge_kind_id)
