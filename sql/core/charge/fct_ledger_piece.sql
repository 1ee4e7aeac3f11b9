-- One row per piece of a delivered month's charges: a day's sum of whole lines, a run's share of a line, or its rest.
-- partition: billing_period
-- The ledger but fees of Capacity Blocks (fct_ledger). Storage and network of runs cost evenly over the line's time,
-- bytes while the instance was up; time no run had them stays shared, and runs share what they had together.
with attached as (
    select source_name, source_file, source_row, coalesce(storage_id(resource_id), resource_id) as attached_id,
        unix_ms(usage_started_at) as line_started_ms, unix_ms(usage_ended_at) as line_ended_ms,
        case when date_diff('second', usage_started_at, usage_ended_at) <= 3600 then billed_ms end as up_ms
    from fct_charge
    left join (select billed_ms, resource_id, hour_started_at as usage_started_at from fct_resource_hourly) as hour
        using (resource_id, usage_started_at) where line_class = 'attached'
),

held as (
    select line.source_name, line.source_file, line.source_row, stay.run_id, stay.attempt_no, stay.server_id,
        stay.bucket, stay.evidence, greatest(stay.started_ms, line.line_started_ms) as started_ms,
        least(stay.ended_ms, line.line_ended_ms) as ended_ms
    from attached as line
    -- Bytes are the instance's; whose they were, the stays on it say.
    join stg_tracker__stay_monthly as stay on stay.resource_id = line.attached_id
        and (stay.stay_kind = 'storage' or (stay.stay_kind = 'machine' and is_instance_id(stay.resource_id)))
        and stay.started_ms < line.line_ended_ms and stay.ended_ms > line.line_started_ms
        and stay.started_ms < stay.ended_ms
),

cut as (
    select *, row_number() over stays as piece_no, sum(ended_ms - started_ms) over stays as upper_ms,
        -- What each adds to the time that others had it before.
        greatest(ended_ms - greatest(started_ms, coalesce(max(ended_ms) over begun, started_ms)), 0) as added_ms
    from held
    window stays as (partition by source_name, source_file, source_row
        order by coalesce(run_id, server_id), run_id is null, attempt_no, started_ms
        rows between unbounded preceding and current row),
    begun as (partition by source_name, source_file, source_row order by started_ms, ended_ms
        rows between unbounded preceding and 1 preceding)
),

taken as (
    select source_name, source_file, source_row, sum(added_ms) as units, max(upper_ms) as all_ms from cut group by all),

rest as (
    select line.*, coalesce(taken.units, 0) as taken_units, taken.all_ms,
        greatest(least(line.up_ms, line.line_ended_ms - line.line_started_ms), coalesce(taken.units, 0)) as whole_units
    from attached as line left join taken using (source_name, source_file, source_row)
),

attached_share as (
    select cut.source_name, cut.source_file, cut.source_row, cut.piece_no, cut.bucket, cut.run_id, cut.attempt_no,
        cut.server_id, cut.evidence, cut.started_ms, cut.ended_ms,
        scaled_units(cut.upper_ms - (cut.ended_ms - cut.started_ms), rest.taken_units, rest.all_ms) as lower_units,
        scaled_units(cut.upper_ms, rest.taken_units, rest.all_ms) as upper_units, rest.whole_units
    from cut join rest using (source_name, source_file, source_row)

    union all

    select source_name, source_file, source_row, 1000000, 'shared', null, null, null, null, line_started_ms,
        line_ended_ms, taken_units, whole_units, whole_units
    from rest where taken_units < whole_units
),

-- What corrects an hour, or has no time of its own, is shared out as the hour is.
in_hour as (
    select line.source_name, line.source_file, line.source_row from fct_charge as line
    join fct_resource_hourly as hour
        on hour.resource_id = line.resource_id and hour.hour_started_at = line.usage_started_at
    where line.line_class = 'instance' and line.bucket is not null
)

select
    billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
    billing_currency, 'whole' as piece_kind, cast(null as varchar) as source_name, cast(null as varchar) as source_file,
    cast(null as bigint) as source_row, cast(0 as bigint) as piece_no, bucket, charge_category, service, region_id,
    accelerator_family, market, run_id, cast(null as bigint) as attempt_no, cast(null as varchar) as server_id,
    case when bucket = 'run' then case when tag_run_id is null then 'tag' else 'tag_folded' end end as evidence, resource_id,
    -- Elsewhere it is kept for reserved capacity, and would only lengthen the ledger.
    case when source_row is not null or accelerator_family <> 'none' then instance_type end as instance_type, tag_owner, tag_team, tag_run_id, iam_principal,
    cast(null as timestamp) as hour_started_at, cast(null as bigint) as started_ms, cast(null as bigint) as ended_ms, cast(null as bigint) as used_units,
    cast(null as bigint) as billed_units, is_unpriced, is_cost_unknown,
    sum(accelerator_hours) as accelerator_hours, sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd
from fct_charge
anti join in_hour using (source_name, source_file, source_row)
where bucket is not null
group by all

union all

select
    line.billing_period, line.billing_month, line.usage_date, line.payer_account_id, line.account_id, line.invoice_id,
    line.billing_entity, line.invoice_issuer, line.billing_currency, 'instance_hour', line.source_name,
    line.source_file, line.source_row, share.share_no, share.bucket, line.charge_category, line.service, line.region_id,
    line.accelerator_family, line.market, share.run_id, share.attempt_no, share.server_id, share.evidence,
    line.resource_id, line.instance_type, line.tag_owner, line.tag_team, line.tag_run_id,
    null, share.hour_started_at, share.started_ms, share.ended_ms, share.upper_units - share.lower_units, share.billed_units,
    line.is_unpriced, line.is_cost_unknown,
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
    line.billing_period, line.billing_month, line.usage_date, line.payer_account_id, line.account_id, line.invoice_id,
    line.billing_entity, line.invoice_issuer, line.billing_currency, 'attached', line.source_name, line.source_file,
    line.source_row, share.piece_no, share.bucket, line.charge_category, line.service, line.region_id,
    line.accelerator_family, line.market,
    share.run_id, share.attempt_no, share.server_id, share.evidence, line.resource_id, null,
    case when share.bucket = 'shared' then line.tag_owner end,
    case when share.bucket = 'shared' then line.tag_team end, null, null, line.usage_started_at, share.started_ms,
    share.ended_ms, share.upper_units - share.lower_units, share.whole_units, line.is_unpriced, line.is_cost_unknown, 0,
    piece_usd(line.list_cost_usd, share.lower_units, share.upper_units, share.whole_units),
    piece_usd(line.effective_cost_usd, share.lower_units, share.upper_units, share.whole_units),
    piece_usd(line.billed_cost_usd, share.lower_units, share.upper_units, share.whole_units)
from fct_charge as line
join attached_share as share using (source_name, source_file, source_row)
