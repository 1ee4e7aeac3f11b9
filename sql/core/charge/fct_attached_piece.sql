-- One row per piece of a line of storage or network that hangs on what runs held: the part of each run, and the rest.
-- partition: billing_period
-- Its cost flows evenly over the line's time; the time nobody had it stays shared. Runs that had it together, longer in all than
-- the line is, share the line by their time.
with line as (
    select *, coalesce(storage_id(resource_id), resource_id) as attached_id,
        unix_ms(usage_started_at) as line_started_ms, unix_ms(usage_ended_at) as line_ended_ms
    from fct_charge
    where line_class = 'attached'
),

held as (
    select
        line.source_name, line.source_file, line.source_row,
        stay.run_id, stay.attempt_no, stay.evidence,
        greatest(stay.started_ms, line.line_started_ms) as started_ms,
        least(stay.ended_ms, line.line_ended_ms) as ended_ms
    from line
    -- Bytes are the instance's; whose they were, the stays on it say.
    join fct_run_stay_monthly as stay
        on stay.resource_id = line.attached_id
        and (stay.stay_kind = 'storage' or is_instance_id(stay.resource_id))
        and stay.started_ms < stay.ended_ms
        and stay.started_ms < line.line_ended_ms
        and stay.ended_ms > line.line_started_ms
),

cut as (
    select
        *,
        sum(ended_ms - started_ms) over (partition by source_name, source_file, source_row
            order by run_id, attempt_no, started_ms
            rows between unbounded preceding and current row) as upper_units,
        row_number() over (partition by source_name, source_file, source_row order by run_id, attempt_no, started_ms) as piece_no
    from held
),

taken as (
    select source_name, source_file, source_row, max(upper_units) as taken_units
    from cut
    group by source_name, source_file, source_row
),

whole as (
    select line.*, coalesce(taken.taken_units, 0) as taken_units,
        greatest(coalesce(taken.taken_units, 0), line.line_ended_ms - line.line_started_ms) as whole_units
    from line
    left join taken on taken.source_name = line.source_name and taken.source_file = line.source_file
        and taken.source_row = line.source_row
),

share as (
    select source_name, source_file, source_row, piece_no, 'run' as bucket, run_id, attempt_no, evidence, started_ms, ended_ms,
        upper_units - (ended_ms - started_ms) as lower_units, upper_units
    from cut

    union all

    select source_name, source_file, source_row, 1000000, 'shared', null, null, null, line_started_ms, line_ended_ms,
        taken_units, whole_units
    from whole
    where taken_units < whole_units
)

select
    whole.source_name, whole.source_file, whole.source_row, cast(share.piece_no as bigint) as piece_no,
    whole.billing_period, whole.billing_month, whole.payer_account_id, whole.account_id,
    whole.invoice_id, whole.billing_entity, whole.invoice_issuer, whole.billing_currency,
    share.bucket, whole.charge_category, whole.service, whole.region_id, whole.market,
    whole.resource_id, whole.accelerator_family, whole.usage_date, whole.usage_started_at as hour_started_at,
    share.run_id, share.attempt_no, share.evidence, share.started_ms, share.ended_ms,
    cast(share.upper_units - share.lower_units as bigint) as used_units, cast(whole.whole_units as bigint) as billed_units,
    piece_usd(whole.list_cost_usd, share.lower_units, share.upper_units, whole.whole_units) as list_cost_usd,
    piece_usd(whole.effective_cost_usd, share.lower_units, share.upper_units, whole.whole_units) as effective_cost_usd,
    piece_usd(whole.billed_cost_usd, share.lower_units, share.upper_units, whole.whole_units) as billed_cost_usd,
    whole.tag_run_id, whole.tag_owner, whole.tag_team
from share
join whole on whole.source_name = share.source_name and whole.source_file = share.source_file and whole.source_row = share.source_row
