-- One row per value of a run tag on unattributed spend that names no recorded run: whether it is a provisional run.
-- Values that differ in case or outer spaces are one; the spelling with most accelerator hours names it. A word for a
-- kind of use is no run, nor is a value in use for 30 days without a gap.
with tagged as (
    select tag_run_id, usage_date, accelerator_hours
    from fct_charge as line
    anti join fct_resource_share_hourly as share on share.billing_period = line.billing_period
        and share.resource_id = case when line.line_class = 'instance' then line.resource_id end and share.hour_started_at = line.usage_started_at
    where line.bucket = 'unattributed' and line.tag_run_id is not null

    union all

    select line.tag_run_id, line.usage_date, line.usage_quantity * line.accelerator_count
    from fct_charge as line
    join fct_resource_share_hourly as share
        on share.billing_period = line.billing_period
        and share.resource_id = line.resource_id and share.hour_started_at = line.usage_started_at
    where line.line_class = 'instance' and line.tag_run_id is not null and share.bucket = 'unattributed'
),

line as (
    select tagged.*, folded(tagged.tag_run_id) as run_key
    from tagged
    anti join dim_run as run on folded(run.run_id) = folded(tagged.tag_run_id)
),

spelling as (
    select run_key, tag_run_id as run_id, count(*) over (partition by run_key) as spelling_count,
        row_number() over (partition by run_key order by sum(coalesce(accelerator_hours, 0)) desc, tag_run_id)
            as spelling_no
    from line
    group by run_key, tag_run_id
),

-- Days in a row have one number.
day as (
    select run_key, usage_date,
        unix_ms(cast(usage_date as timestamp)) // 86400000
            - row_number() over (partition by run_key order by usage_date) as row_of_days
    from (select distinct run_key, usage_date from line) as used
),

longest as (
    select run_key, max(day_count) as longest_use_day_count, min(first_date) as first_date, max(last_date) as last_date
    from (select run_key, count(*) as day_count, min(usage_date) as first_date, max(usage_date) as last_date
        from day group by run_key, row_of_days) as row_of_day
    group by run_key
),

-- Up to a third of it typed otherwise, within a week of the run.
nearest as (
    select spelling.run_key, run.run_id
    from spelling
    join longest on longest.run_key = spelling.run_key
    join dim_run as run on run.started_at < longest.last_date + interval 8 days
        and run.ended_at >= longest.first_date - interval 7 days
    where spelling.spelling_no = 1 and levenshtein(folded(run.run_id), spelling.run_key) * 3 <= length(spelling.run_key)
    qualify row_number() over (partition by spelling.run_key
        order by levenshtein(folded(run.run_id), spelling.run_key), run.run_id) = 1
)

select
    spelling.run_key, spelling.run_id, spelling.spelling_count, longest.first_date, longest.last_date,
    longest.longest_use_day_count, not names_no_run(spelling.run_key) and longest.longest_use_day_count < 30 as is_probably_run,
    -- Only then it is charged with what its tag names.
    policy.has_provisional_runs and not names_no_run(spelling.run_key) and longest.longest_use_day_count < 30
        as is_provisional,
    case
        when names_no_run(spelling.run_key) then 'probably not a run: the value names a kind of use'
        when longest.longest_use_day_count >= 30
            then 'probably not a run: used on ' || cast(longest.longest_use_day_count as varchar) || ' days without a gap'
        else 'the tag names an unrecorded run: ' || coalesce('is it ' || nearest.run_id || '? Else ', '')
            || 'record its run events'
    end as missing_evidence
from spelling
cross join policy
join longest on longest.run_key = spelling.run_key
left join nearest on nearest.run_key = spelling.run_key
where spelling.spelling_no = 1
