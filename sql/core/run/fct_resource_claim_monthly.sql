-- One row per stay that a run claims on a billed resource: told by the run itself, or by a tag of the resource.
-- partition: billing_period
-- stored: no
with job as (
    select job_name(resource_id) as job_name, max(resource_id) as resource_id
    from fct_resource_hourly
    where is_job
    group by 1
    -- Accounts may each have a job of this name: then the name alone says nothing.
    having count(distinct resource_id) = 1
),

told as (
    select stay.billing_period, coalesce(job.resource_id, stay.resource_id) as resource_id, stay.run_id, stay.attempt_no,
        stay.started_ms, stay.ended_ms, stay.accelerators_used, stay.evidence
    from fct_run_stay_monthly as stay
    left join job on job.job_name = stay.resource_id
    where stay.stay_kind = 'machine'
)

select billing_period, resource_id, run_id, attempt_no, started_ms, ended_ms, accelerators_used, evidence
from told

union all

-- A tag says which run a node served when the run itself did not say.
select attempt.billing_period, tagged.resource_id, attempt.run_id, attempt.attempt_no, attempt.started_ms, attempt.ended_ms,
    cast(null as bigint) as accelerators_used, 'tag' as evidence
from (select distinct resource_id, tag_run_id from fct_resource_hourly) as tagged
join fct_run_stay_monthly as attempt on attempt.stay_kind = 'attempt' and attempt.run_id = tagged.tag_run_id
anti join told as known on known.resource_id = tagged.resource_id and known.run_id = tagged.tag_run_id
