-- One row per attempt that names no machine and each machine that fits what it describes; one more for those the bill lacks.
-- partition: billing_period
-- The last rung of the join (facts training-runs 1.13): type, account, region and time. A machine fits that was billed while the
-- whole gang ran and that nobody else says or is tagged to have used then; clocks differ by up to a minute.
with wanted as (
    select
        month.billing_period, stay.run_id, stay.attempt_no, stay.instance_type, stay.account_id, stay.region_id,
        min(stay.resource_id) as any_resource_id,
        min(unix_ms(greatest(stay.joined_at, month.started_at))) as started_ms,
        max(unix_ms(least(stay.left_at, month.ended_at))) as ended_ms,
        max(unix_ms(greatest(stay.joined_at, month.started_at))) as all_started_ms,
        min(unix_ms(least(stay.left_at, month.ended_at))) as first_ended_ms,
        max(stay.accelerators_used) as accelerators_used,
        count(distinct stay.resource_id) as machine_count
    from stg_tracker__resource as stay
    cross join this_month as month
    where stay.is_any_machine and stay.joined_at < month.ended_at and stay.left_at > month.started_at
    group by month.billing_period, stay.run_id, stay.attempt_no, stay.instance_type, stay.account_id, stay.region_id
),

billed as (
    select
        wanted.run_id, wanted.attempt_no, wanted.instance_type, wanted.account_id, wanted.region_id, hour.resource_id,
        sum(least(wanted.first_ended_ms, hour.window_ended_ms) - greatest(wanted.all_started_ms, hour.window_started_ms)) as billed_ms
    from wanted
    join fct_resource_hourly as hour
        on hour.instance_type = wanted.instance_type and hour.account_id = wanted.account_id and hour.region_id = wanted.region_id
        and hour.window_started_ms < wanted.first_ended_ms
        and hour.window_ended_ms > wanted.all_started_ms
    where not hour.is_job
    group by wanted.run_id, wanted.attempt_no, wanted.instance_type, wanted.account_id, wanted.region_id, hour.resource_id
),

fit as (
    select wanted.*, billed.resource_id
    from wanted
    join billed on billed.run_id = wanted.run_id and billed.attempt_no = wanted.attempt_no
        and billed.instance_type = wanted.instance_type and billed.account_id = wanted.account_id
        and billed.region_id = wanted.region_id
    anti join fct_resource_claim_monthly as claim
        on claim.resource_id = billed.resource_id
        and claim.started_ms < wanted.ended_ms - 60000
        and claim.ended_ms > wanted.started_ms + 60000
    where billed.billed_ms >= wanted.first_ended_ms - wanted.all_started_ms - 120000
),

-- Another that describes a machine for the same time may have been the one that used it.
rival as (
    select distinct fit.run_id, fit.attempt_no, fit.instance_type, fit.account_id, fit.region_id
    from fit
    join fit as other
        on other.resource_id = fit.resource_id
        and other.started_ms < fit.ended_ms - 60000
        and other.ended_ms > fit.started_ms + 60000
    where other.run_id <> fit.run_id or other.attempt_no <> fit.attempt_no
),

judged as (
    select
        fit.*, rival.run_id is not null as has_rival,
        count(*) over (partition by fit.run_id, fit.attempt_no, fit.instance_type, fit.account_id, fit.region_id) as fit_count
    from fit
    left join rival on rival.run_id = fit.run_id and rival.attempt_no = fit.attempt_no
        and rival.instance_type = fit.instance_type and rival.account_id = fit.account_id and rival.region_id = fit.region_id
),

found as (
    select run_id, attempt_no, instance_type, account_id, region_id, max(fit_count) as fit_count
    from judged
    group by run_id, attempt_no, instance_type, account_id, region_id
)

select
    billing_period, run_id, attempt_no, resource_id, started_ms, ended_ms, accelerators_used,
    case when has_rival then 'rivals' when fit_count > machine_count then 'too_many' else 'match' end as match_kind,
    cast(machine_count as bigint) as machine_count, cast(fit_count as bigint) as fit_count
from judged

union all

select
    wanted.billing_period, wanted.run_id, wanted.attempt_no, wanted.any_resource_id, wanted.started_ms, wanted.ended_ms,
    wanted.accelerators_used, 'missing',
    cast(wanted.machine_count as bigint), cast(coalesce(found.fit_count, 0) as bigint)
from wanted
left join found on found.run_id = wanted.run_id and found.attempt_no = wanted.attempt_no
    and found.instance_type = wanted.instance_type and found.account_id = wanted.account_id and found.region_id = wanted.region_id
where coalesce(found.fit_count, 0) < wanted.machine_count
