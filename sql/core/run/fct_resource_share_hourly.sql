-- One row per resource, hour and user of it: each stay of a run or a server, and last the rest that none used.
-- partition: billing_period
-- Units are accelerator-milliseconds (milliseconds where there is no accelerator); cuts run from 0 to billed_units.
with claim as (
    select resource_id, run_id, attempt_no, server_id, bucket, evidence, started_ms, ended_ms, accelerators_used
    from fct_resource_claim_monthly
    where is_claim
),

stay as (
    select
        hour.resource_id, hour.hour_ms, hour.billed_units, hour.capacity_count, hour.accelerator_family, hour.is_job,
        claim.run_id, claim.attempt_no, claim.server_id, claim.bucket, claim.evidence,
        greatest(claim.started_ms, hour.window_started_ms) as started_ms,
        least(claim.ended_ms, hour.window_ended_ms) as ended_ms,
        -- A job or a cluster bills several machines' hours in one; ten seconds are rounding.
        coalesce(case when hour.accelerator_family <> 'unknown' then claim.accelerators_used end,
            hour.capacity_count * greatest((hour.billed_ms + 3590000) // 3600000, 1)) as used_count
    from fct_resource_hourly as hour
    join claim
        on claim.resource_id = hour.resource_id
        and claim.started_ms < hour.window_ended_ms
        and claim.ended_ms > hour.window_started_ms
),

-- A run's own record beats a tag or a guess for the same time: a node keeps its tag when it is used again.
recorded as (
    select * from stay where not is_estimated(evidence)
),

guessed as (
    select * from stay where is_estimated(evidence)
),

standing as (
    select * from recorded

    union all

    select guessed.*
    from guessed
    anti join recorded as better
        on better.resource_id = guessed.resource_id
        and better.hour_ms = guessed.hour_ms
        and better.started_ms < guessed.ended_ms
        and better.ended_ms > guessed.started_ms
),

measured as (
    select
        *,
        least((ended_ms - started_ms) * used_count, billed_units) as claimed_units,
        sum(least((ended_ms - started_ms) * used_count, billed_units))
            over (partition by resource_id, hour_ms) as all_claimed_units
    from standing
),

-- A run's stays lie side by side, so that one stay recorded as two touching ones is cut at the same places.
cut as (
    select
        *,
        sum(claimed_units) over (partition by resource_id, hour_ms
            order by coalesce(run_id, server_id), run_id is null, attempt_no, started_ms, ended_ms
            rows between unbounded preceding and current row) as claimed_upto,
        row_number() over (partition by resource_id, hour_ms
            order by coalesce(run_id, server_id), run_id is null, attempt_no, started_ms, ended_ms) as share_no,
        -- Clocks differ by seconds: an excess within a minute is fitted to the bill, and runs on a node without
        -- accelerators, or with an unknown number of them, share it. More stays as negative idle, which is an error the checks name. A job is billed for its
        -- runs' time and no other, so they share all of it.
        is_job or (all_claimed_units > billed_units
            and (all_claimed_units <= billed_units + 60000 * capacity_count or accelerator_family in ('none', 'unknown'))) as is_fitted,
        not is_job and (ended_ms - started_ms) * used_count > billed_units + 1000 * used_count as is_clipped
    from measured
),

used as (
    select
        resource_id, hour_ms, share_no, run_id, attempt_no, server_id, bucket, evidence, started_ms, ended_ms,
        (is_fitted and not is_job) or is_clipped as is_fitted,
        case when is_fitted then (claimed_upto - claimed_units) * billed_units // all_claimed_units
            else claimed_upto - claimed_units end as lower_units,
        -- The last one takes all that is left: its product would be the largest.
        case when is_fitted and claimed_upto = all_claimed_units then billed_units
            when is_fitted then claimed_upto * billed_units // all_claimed_units else claimed_upto end as upper_units
    from cut
),

rest as (
    select
        hour.resource_id, hour.hour_ms, coalesce(used.taken, 0) as taken_units, hour.billed_units,
        hour.window_started_ms, hour.window_ended_ms,
        known.resource_id is not null or hour.was_held_before as is_known
    from fct_resource_hourly as hour
    left join (select resource_id, hour_ms, max(upper_units) as taken from used group by resource_id, hour_ms) as used
        on used.resource_id = hour.resource_id and used.hour_ms = hour.hour_ms
    left join (select distinct resource_id from claim) as known on known.resource_id = hour.resource_id
)

select
    hour.billing_period, hour.resource_id, hour.hour_started_at, hour.hour_ms, cast(used.share_no as bigint) as share_no,
    used.bucket, used.run_id, used.attempt_no, used.server_id, used.evidence, used.started_ms, used.ended_ms,
    cast(used.lower_units as bigint) as lower_units, cast(used.upper_units as bigint) as upper_units, hour.billed_units,
    used.is_fitted, cast(null as varchar) as tag_run_id
from used
join fct_resource_hourly as hour on hour.resource_id = used.resource_id and hour.hour_ms = used.hour_ms

union all

-- Idle belongs to a resource that runs are known to use; one that no run ever names stays unattributed.
select
    hour.billing_period, hour.resource_id, hour.hour_started_at, hour.hour_ms, 1000000 as share_no,
    case when rest.is_known then 'idle' else 'unattributed' end as bucket,
    null as run_id, null as attempt_no, null as server_id, null as evidence, rest.window_started_ms, rest.window_ended_ms,
    cast(rest.taken_units as bigint) as lower_units, rest.billed_units as upper_units, rest.billed_units, false as is_fitted,
    case when not rest.is_known then hour.tag_run_id end
from rest
join fct_resource_hourly as hour on hour.resource_id = rest.resource_id and hour.hour_ms = rest.hour_ms
where rest.taken_units <> rest.billed_units
