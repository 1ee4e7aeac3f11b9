-- One row per resource, hour and user of it: each stay of a run or a server, and last the rest that none used.
-- partition: billing_period
-- Units are accelerator-milliseconds (milliseconds where there is no accelerator); cuts run from 0 to billed_units.
-- Runs or servers that together may claim more than the machine has, or than was billed of it.
with crowd as (
    select resource_id, hour_ms
    from fct_resource_stay_hourly
    where used_count > 0 and not is_job and accelerator_family not in ('none', 'unknown')
    group by resource_id, hour_ms
    having min(coalesce(run_id, server_id)) <> max(coalesce(run_id, server_id))
        and (sum(used_count) > max(whole_count) or sum(claimed_units) > max(billed_units))
),

moment as (
    select resource_id, hour_ms, at_ms, lead(at_ms) over (partition by resource_id, hour_ms order by at_ms) as until_ms
    from (
        select resource_id, hour_ms, started_ms as at_ms from fct_resource_stay_hourly
        union
        select resource_id, hour_ms, ended_ms from fct_resource_stay_hourly
    ) as edge
    join crowd using (resource_id, hour_ms)
),

held as (
    select
        stay.resource_id, stay.hour_ms, stay.share_no, stay.used_count, moment.until_ms - moment.at_ms as held_ms,
        sum(stay.used_count) over together as all_count,
        sum(stay.used_count) over (partition by stay.resource_id, stay.hour_ms, moment.at_ms order by stay.share_no)
            as upto_count,
        least(stay.whole_count, sum(stay.used_count) over together) as held_count
    from fct_resource_stay_hourly as stay
    join moment
        on moment.resource_id = stay.resource_id and moment.hour_ms = stay.hour_ms
        and moment.at_ms >= stay.started_ms and moment.until_ms <= stay.ended_ms
    where stay.used_count > 0
    window together as (partition by stay.resource_id, stay.hour_ms, moment.at_ms)
),

-- At each moment they share the machine by the accelerators they claim.
fair as (
    select resource_id, hour_ms, share_no,
        sum(held_ms * held_count * upto_count // all_count - held_ms * held_count * (upto_count - used_count) // all_count)
            as fair_units
    from held
    group by resource_id, hour_ms, share_no
),

-- Clocks differ by seconds: an excess within a minute is no conflict.
judged as (
    select stay.*, fair.fair_units,
        coalesce(sum(stay.claimed_units - fair.fair_units) over (partition by stay.resource_id, stay.hour_ms)
            > 60000 * stay.capacity_count, false) as is_crowded
    from fct_resource_stay_hourly as stay
    left join fair
        on fair.resource_id = stay.resource_id and fair.hour_ms = stay.hour_ms and fair.share_no = stay.share_no
),

entitled as (
    select *, least(case when is_crowded then coalesce(fair_units, 0) else claimed_units end, billed_units) as own_units
    from judged
),

cut as (
    select
        *, sum(own_units) over (partition by resource_id, hour_ms) as all_units,
        sum(own_units) over (partition by resource_id, hour_ms order by share_no) as upto_units
    from entitled
),

-- Claims beyond the billed time are scaled down to it. A job is billed for its runs' time and no other, so they share all of it.
used as (
    select
        resource_id, hour_ms, share_no, run_id, attempt_no, server_id, bucket, evidence, started_ms, ended_ms, claimed_units,
        not is_job and (all_units > billed_units or claimed_units > billed_units + 1000 * used_count) as is_fitted,
        is_crowded or (fair_units is not null and all_units > billed_units + 60000 * capacity_count) as is_overbooked,
        case when is_job or all_units > billed_units then (upto_units - own_units) * billed_units // all_units
            else upto_units - own_units end as lower_units,
        -- The last one takes all that is left: its product would be the largest.
        case when not is_job and all_units <= billed_units then upto_units
            when upto_units = all_units then billed_units
            else upto_units * billed_units // all_units end as upper_units
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
    left join (select distinct resource_id from fct_resource_claim_monthly where is_claim) as known
        on known.resource_id = hour.resource_id
)

select
    hour.billing_period, hour.resource_id, hour.hour_started_at, hour.hour_ms, used.share_no,
    used.bucket, used.run_id, used.attempt_no, used.server_id, used.evidence, used.started_ms, used.ended_ms,
    used.claimed_units, cast(used.lower_units as bigint) as lower_units, cast(used.upper_units as bigint) as upper_units,
    hour.billed_units, used.is_fitted, used.is_overbooked, cast(null as varchar) as tag_run_id
from used
join fct_resource_hourly as hour on hour.resource_id = used.resource_id and hour.hour_ms = used.hour_ms

union all

-- Idle belongs to a resource that runs are known to use; one that no run ever names stays unattributed.
select
    hour.billing_period, hour.resource_id, hour.hour_started_at, hour.hour_ms, 1000000 as share_no,
    case when rest.is_known then 'idle' else 'unattributed' end as bucket,
    null as run_id, null as attempt_no, null as server_id, null as evidence, rest.window_started_ms, rest.window_ended_ms,
    null as claimed_units, cast(rest.taken_units as bigint) as lower_units, rest.billed_units as upper_units,
    rest.billed_units, false as is_fitted, false as is_overbooked, case when not rest.is_known then hour.tag_run_id end
from rest
join fct_resource_hourly as hour on hour.resource_id = rest.resource_id and hour.hour_ms = rest.hour_ms
where rest.taken_units <> rest.billed_units
