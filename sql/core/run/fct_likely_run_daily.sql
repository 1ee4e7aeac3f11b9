-- One row per resource and day whose accelerator spend no run explains, with the run nearest to it: one seen on it, one it would fit.
with line as (
    select distinct coalesce(job_name(resource_id), resource_id) as claim_key, usage_date
    from fct_ledger
    where bucket = 'unattributed' and resource_id is not null
),

seen as (
    select
        line.claim_key, line.usage_date, run.owner, run.team,
        cast(stay.joined_at as date) <= line.usage_date and cast(stay.left_at as date) >= line.usage_date as is_same_day,
        date_trunc('month', stay.joined_at) <= line.usage_date
            and date_trunc('month', line.usage_date) <= date_trunc('month', stay.left_at) as is_same_month,
        unix_ms(stay.left_at) - unix_ms(stay.joined_at) as stay_ms
    from line
    join stg_tracker__resource as stay on stay.resource_id = line.claim_key
    join dim_run as run on run.run_id = stay.run_id
),

-- The nearest run wins; of several the one that stayed longest, then by name, so that a rebuild guesses alike.
seen_run as (
    select
        *,
        row_number() over (partition by claim_key, usage_date
            order by is_same_day desc, is_same_month desc, stay_ms desc, team, owner) as rank_no
    from seen
),

-- Runs that describe such a machine and name none, where more than they fit the description.
fitting_run as (
    select
        line.claim_key, line.usage_date, run.run_id, run.owner, run.team, match.match_kind, match.machine_count, match.fit_count,
        row_number() over (partition by line.claim_key, line.usage_date
            order by match.ended_ms - match.started_ms desc, match.run_id, match.attempt_no) as rank_no
    from line
    join fct_resource_claim_monthly as match
        on match.resource_id = line.claim_key
        and match.started_ms < unix_ms(cast(line.usage_date as timestamp)) + 86400000
        and match.ended_ms > unix_ms(cast(line.usage_date as timestamp))
    join dim_run as run on run.run_id = match.run_id
    where match.match_kind in ('rivals', 'too_many')
)

select
    line.claim_key, line.usage_date,
    seen.claim_key is not null as is_seen, coalesce(seen.is_same_month, false) as is_seen_in_month,
    coalesce(seen.is_same_day, false) as is_seen_on_day, seen.owner as seen_owner, seen.team as seen_team,
    fitting.run_id as fitting_run_id, fitting.owner as fitting_owner, fitting.team as fitting_team,
    fitting.match_kind, fitting.machine_count, fitting.fit_count
from line
left join (select * from seen_run where rank_no = 1) as seen
    on seen.claim_key = line.claim_key and seen.usage_date = line.usage_date
left join (select * from fitting_run where rank_no = 1) as fitting
    on fitting.claim_key = line.claim_key and fitting.usage_date = line.usage_date
