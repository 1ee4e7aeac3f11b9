-- One row per resource, hour and user of it: each stay of a run or a server, and last the rest that none used.
-- partition: billing_period
-- Units are accelerator-milliseconds (milliseconds where there is no accelerator); cuts run from 0 to billed_units.
with claimed as (
    select hour.billing_period, hour.resource_id, hour.hour_started_at, hour.hour_ms, hour.billed_units, hour.is_job,
        hour.capacity_count, hour.whole_count, hour.accelerator_family, claim.run_id, claim.attempt_no, claim.server_id,
        claim.bucket, claim.evidence, not is_estimated(claim.evidence) as is_recorded,
        greatest(claim.started_ms, hour.window_started_ms) as started_ms,
        least(claim.ended_ms, hour.window_ended_ms) as ended_ms,
        least(coalesce(case when hour.accelerator_family <> 'unknown' then claim.accelerators_used end, hour.whole_count),
            case when is_instance_id(hour.resource_id) then hour.capacity_count end) as used_count
    from fct_resource_hourly as hour
    join fct_resource_claim_monthly as claim on claim.is_claim and claim.resource_id = hour.resource_id
        and claim.started_ms < hour.window_ended_ms and claim.ended_ms > hour.window_started_ms
),

-- A run's own record beats a tag or a guess for the same time: a node keeps its tag when it is used again. The stays of
-- a run lie side by side, so that one stay recorded as two touching ones is cut at the same places.
stay as (
    select claimed.*, (claimed.ended_ms - claimed.started_ms) * claimed.used_count as claimed_units,
        row_number() over (partition by claimed.resource_id, claimed.hour_ms
            order by coalesce(claimed.run_id, claimed.server_id), claimed.run_id is null, claimed.attempt_no,
                claimed.started_ms, claimed.ended_ms) as share_no
    from claimed
    anti join claimed as better
        on better.is_recorded and better.is_recorded <> claimed.is_recorded
        and better.resource_id = claimed.resource_id and better.hour_ms = claimed.hour_ms
        and better.started_ms < claimed.ended_ms and better.ended_ms > claimed.started_ms
),

-- Runs or servers that together may claim more than the machine has, or than was billed of it.
crowd as (
    select resource_id, hour_ms from stay
    where used_count > 0 and not is_job and accelerator_family not in ('none', 'unknown')
    group by resource_id, hour_ms
    having min(coalesce(run_id, server_id)) <> max(coalesce(run_id, server_id))
        and (sum(used_count) > max(whole_count) or sum(claimed_units) > max(billed_units))
),

moment as (
    select resource_id, hour_ms, at_ms, lead(at_ms) over (partition by resource_id, hour_ms order by at_ms) as until_ms
    from (select resource_id, hour_ms, started_ms as at_ms from stay
        union select resource_id, hour_ms, ended_ms from stay) as edge
    join crowd using (resource_id, hour_ms)
),

held as (
    select stay.resource_id, stay.hour_ms, stay.share_no, stay.used_count, stay.whole_count,
        moment.until_ms - moment.at_ms as held_ms, sum(stay.used_count) over together as all_count,
        sum(stay.used_count) over (partition by stay.resource_id, stay.hour_ms, moment.at_ms order by stay.share_no)
            as upto_count
    from stay
    join moment on moment.resource_id = stay.resource_id and moment.hour_ms = stay.hour_ms
        and moment.at_ms >= stay.started_ms and moment.until_ms <= stay.ended_ms
    where stay.used_count > 0
    window together as (partition by stay.resource_id, stay.hour_ms, moment.at_ms)
),

-- At each moment they share the machine by the accelerators they claim.
fair as (
    select resource_id, hour_ms, share_no, sum(held_ms * least(whole_count, all_count) * upto_count // all_count
            - held_ms * least(whole_count, all_count) * (upto_count - used_count) // all_count) as fair_units
    from held
    group by resource_id, hour_ms, share_no
),

-- Clocks differ by seconds: an excess within a minute is no conflict.
judged as (
    select stay.*, fair.fair_units, coalesce(sum(stay.claimed_units - fair.fair_units)
        over (partition by stay.resource_id, stay.hour_ms) > 60000 * stay.capacity_count, false) as is_crowded
    from stay
    left join fair using (resource_id, hour_ms, share_no)
),

cut as (
    select *, sum(own_units) over (partition by resource_id, hour_ms) as all_units,
        sum(own_units) over (partition by resource_id, hour_ms order by share_no) as upto_units
    from (select *, least(case when is_crowded then coalesce(fair_units, 0) else claimed_units end, billed_units)
        as own_units from judged) as entitled
),

-- Claims beyond the billed time are scaled down to it. A job is billed for its runs' time and no other: they share all
-- of it. The last one takes all that is left: its product would be the largest.
used as (
    select *,
        case when is_job or all_units > billed_units then (upto_units - own_units) * billed_units // all_units
            else upto_units - own_units end as lower_units,
        case when not is_job and all_units <= billed_units then upto_units when upto_units = all_units then billed_units
            else upto_units * billed_units // all_units end as upper_units
    from cut
)

select
    billing_period, resource_id, hour_started_at, hour_ms, share_no, bucket, run_id, attempt_no, server_id, evidence,
    started_ms, ended_ms, claimed_units, lower_units, upper_units, billed_units,
    not is_job and (all_units > billed_units or claimed_units > billed_units + 1000 * used_count) as is_fitted,
    is_crowded or (fair_units is not null and all_units > billed_units + 60000 * capacity_count) as is_overbooked,
    cast(null as varchar) as tag_run_id
from used

union all

-- Idle belongs to a resource that runs are known to use; one that no run ever names stays unattributed, as does the time
-- that a tag gives to a run that is not recorded where tags alone name the others.
select
    hour.billing_period, hour.resource_id, hour.hour_started_at, hour.hour_ms, 1000000 as share_no,
    case when hour.is_idle then 'idle' else 'unattributed' end, null, null, null,
    null, hour.window_started_ms, hour.window_ended_ms, null, coalesce(taken.units, 0), hour.billed_units,
    hour.billed_units, false, false, case when not hour.is_idle then hour.tag_run_id end
from (
    select hour.*, case when known.is_by_tag is null then hour.was_held_before else not known.is_by_tag
        or hour.tag_run_id is null or recorded.run_key is not null or names_no_run(folded(hour.tag_run_id)) end as is_idle
    from fct_resource_hourly as hour
    left join (select resource_id, bool_and(evidence in ('tag', 'tag_folded')) as is_by_tag from fct_resource_claim_monthly
        where is_claim and not is_before_month(billing_period, ended_ms) group by resource_id) as known using (resource_id)
    left join (select distinct folded(run_id) as run_key from stg_tracker__stay_monthly) as recorded
        on recorded.run_key = folded(hour.tag_run_id)
) as hour
left join (select resource_id, hour_ms, max(upper_units) as units from used group by all) as taken using (resource_id, hour_ms)
where coalesce(taken.units, 0) <> hour.billed_units
