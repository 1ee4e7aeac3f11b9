-- One row per stay that a run or a server claims on a billed machine: one it recorded, one a tag names, or one found by what the run describes.
-- partition: billing_period
-- A run that names no machine describes one (facts training-runs 1.13): type, account, region and time. A machine fits that was billed
-- while the whole gang ran and that no other run claims then; clocks differ by up to a minute. Rows that are no claim show why (match_kind).
with job as (
    -- Accounts may each have a job of this name: then the name alone identifies nothing.
    select job_name(resource_id) as job_name, max(resource_id) as resource_id
    from fct_resource_hourly where is_job group by job_name(resource_id) having count(distinct resource_id) = 1
),

recorded as (
    select stay.billing_period, coalesce(job.resource_id, stay.resource_id) as resource_id, stay.run_id, stay.attempt_no,
        stay.started_ms, stay.ended_ms, stay.accelerators_used, stay.evidence, stay.server_id, stay.bucket
    from stg_tracker__stay_monthly as stay
    left join job on job.job_name = stay.resource_id
    where stay.stay_kind = 'machine'
),

-- One row of a machine with one tag, one per hour of others; kinds of use name no run. An hour of two tags is of both.
tag_hour as (
    select distinct resource_id, tag_run_id, case when is_retagged then hour_ms end as hour_ms,
        case when is_retagged and other_tag_run_id is not null then 3600000 else 0 end as shared_ms
    from fct_resource_hourly
    join (select resource_id, min(coalesce(other_tag_run_id, tag_run_id)) <> max(tag_run_id) as is_retagged
        from fct_resource_hourly where tag_run_id is not null group by resource_id) as tagged using (resource_id)
    where tag_run_id is not null and (not (is_retagged and names_no_run(folded(tag_run_id)))
        or folded(tag_run_id) in (select folded(run_id) from stg_tracker__stay_monthly))
),

turn as (
    select *, lag(tag_run_id) over hours as earlier_tag_run_id, lag(hour_ms + 3600000 - shared_ms) over hours as from_ms
    from tag_hour window hours as (partition by resource_id order by hour_ms)
),

-- What a machine's tag names from where another's ends to where another's begins.
tagged as (
    select resource_id, tag_run_id, from_ms, lead(hour_ms + shared_ms) over (partition by resource_id order by hour_ms) as until_ms
    from turn where tag_run_id is distinct from earlier_tag_run_id
),

claim as (
    select * from recorded

    union all

    -- A tag shows which run a node served when the run itself did not record it.
    select attempt.billing_period, tagged.resource_id, attempt.run_id, attempt.attempt_no,
        greatest(attempt.started_ms, coalesce(tagged.from_ms, attempt.started_ms)),
        least(attempt.ended_ms, coalesce(tagged.until_ms, attempt.ended_ms)), null,
        min(case when attempt.run_id = tagged.tag_run_id then 'tag' else 'tag_folded' end), null, 'run'
    from tagged
    join stg_tracker__stay_monthly as attempt on attempt.stay_kind = 'attempt' and folded(attempt.run_id) = folded(tagged.tag_run_id)
        and (attempt.run_id = tagged.tag_run_id or attempt.has_one_spelling)
        and coalesce(attempt.started_ms < tagged.until_ms, true) and coalesce(attempt.ended_ms > tagged.from_ms, true)
    anti join recorded as known on known.resource_id = tagged.resource_id and known.run_id = attempt.run_id
    group by 1, 2, 3, 4, 5, 6
),

wanted as (
    select billing_period, run_id, attempt_no, instance_type, account_id, region_id, min(resource_id) as any_resource_id,
        min(started_ms) as started_ms, max(ended_ms) as ended_ms, max(started_ms) as all_started_ms, min(ended_ms) as first_ended_ms,
        max(accelerators_used) as accelerators_used, count(distinct resource_id) as machine_count,
        row_number() over (order by run_id, attempt_no, instance_type, account_id, region_id, max(ended_ms)) as wanted_no
    from stg_tracker__stay_monthly
    where stay_kind = 'machine' and is_any_machine
    group by billing_period, run_id, attempt_no, instance_type, account_id, region_id, is_before_month(billing_period, ended_ms)
),

fit as (
    select wanted.wanted_no, wanted.started_ms, wanted.ended_ms, hour.resource_id
    from wanted
    join fct_resource_hourly as hour on not hour.is_job
        and hour.instance_type = wanted.instance_type and hour.account_id = wanted.account_id and hour.region_id = wanted.region_id
        and hour.window_started_ms < wanted.first_ended_ms and hour.window_ended_ms > wanted.all_started_ms
    anti join claim
        on claim.resource_id = hour.resource_id
        and claim.started_ms < wanted.ended_ms - 60000 and claim.ended_ms > wanted.started_ms + 60000
    group by wanted.wanted_no, wanted.started_ms, wanted.ended_ms, wanted.first_ended_ms, wanted.all_started_ms, hour.resource_id
    having sum(least(wanted.first_ended_ms, hour.window_ended_ms) - greatest(wanted.all_started_ms, hour.window_started_ms))
        >= wanted.first_ended_ms - wanted.all_started_ms - 120000
),

-- Another that describes a machine for the same time may have been the one that used it.
rival as (
    select distinct fit.wanted_no
    from fit
    join fit as other on other.resource_id = fit.resource_id and other.wanted_no <> fit.wanted_no
        and other.started_ms < fit.ended_ms - 60000 and other.ended_ms > fit.started_ms + 60000
),

found as (
    select wanted_no, count(*) as fit_count from fit group by wanted_no
),

judged as (
    select wanted.*, coalesce(found.fit_count, 0) as fit_count, rival.wanted_no is not null as has_rival
    from wanted
    left join found on found.wanted_no = wanted.wanted_no
    left join rival on rival.wanted_no = wanted.wanted_no
)

select billing_period, resource_id, run_id, attempt_no, started_ms, ended_ms, accelerators_used, evidence,
    server_id, bucket, true as is_claim, cast(null as varchar) as match_kind, cast(null as bigint) as machine_count, cast(null as bigint) as fit_count
from claim

union all

select judged.billing_period, fit.resource_id, judged.run_id, judged.attempt_no, judged.started_ms, judged.ended_ms,
    judged.accelerators_used, 'type_match', null, 'run', not judged.has_rival and judged.fit_count <= judged.machine_count,
    case when judged.has_rival then 'rivals' when judged.fit_count > judged.machine_count then 'too_many' else 'match' end,
    judged.machine_count, judged.fit_count
from judged
join fit on fit.wanted_no = judged.wanted_no

union all

select billing_period, any_resource_id, run_id, attempt_no, started_ms, ended_ms, accelerators_used, 'type_match', null, 'run', false, 'missing',
    machine_count, fit_count
from judged
where fit_count < machine_count
