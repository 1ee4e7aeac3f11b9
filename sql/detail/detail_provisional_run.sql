-- One row per currency and value of a run tag that names no recorded run: what it cost, and why it may be no run.
-- Values that differ in case or outer spaces are one. The dollars stay `unattributed` until events of the run arrive.
-- It is in no comparison, baseline, goodput, waste or count of runs.
with line as (
    select ledger.*, folded(ledger.tag_run_id) as run_key,
        coalesce(ledger.hour_started_at, cast(ledger.usage_date as timestamp)) as seen_at
    from fct_ledger as ledger
    cross join policy
    anti join dim_run as run on folded(run.run_id) = folded(ledger.tag_run_id)
    where ledger.bucket = 'unattributed' and ledger.tag_run_id is not null and policy.has_provisional_runs
),

-- The spelling that cost the most names it.
spelling as (
    select billing_currency, run_key, tag_run_id,
        row_number() over (partition by billing_currency, run_key
            order by sum(effective_cost_usd) desc, tag_run_id) as spelling_no
    from line
    group by billing_currency, run_key, tag_run_id
),

-- Days in a row have one number.
day as (
    select billing_currency, run_key,
        unix_ms(cast(usage_date as timestamp)) // 86400000
            - row_number() over (partition by billing_currency, run_key order by usage_date) as row_of_days
    from (select distinct billing_currency, run_key, usage_date from line) as used
),

row_of_day as (
    select billing_currency, run_key, count(*) as day_count from day group by billing_currency, run_key, row_of_days
),

longest as (
    select billing_currency, run_key, max(day_count) as longest_use_day_count
    from row_of_day
    group by billing_currency, run_key
),

run as (
    select
        billing_currency, run_key, count(distinct tag_run_id) as spelling_count,
        min(seen_at) as started_at, max(seen_at) + interval 1 hour as ended_at,
        count(distinct resource_id) as resource_count,
        case when count(distinct instance_type) = 1 then max(instance_type) else 'mixed' end as instance_type,
        case when count(distinct accelerator_family) = 1 then max(accelerator_family) else 'mixed' end
            as accelerator_family,
        max(tag_team) as team,
        sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from line
    group by billing_currency, run_key
)

select
    run.billing_currency, spelling.tag_run_id as run_id, 'tag_only' as evidence, run.spelling_count, run.started_at,
    run.ended_at, run.resource_count, run.instance_type, run.accelerator_family, run.team,
    longest.longest_use_day_count,
    not names_no_run(run.run_key) and longest.longest_use_day_count < 30 as is_probably_run,
    case
        when names_no_run(run.run_key) then 'probably not a run: the value names a kind of use'
        when longest.longest_use_day_count >= 30
            then 'probably not a run: used on ' || cast(longest.longest_use_day_count as varchar) || ' days without a gap'
        else 'record its run events to see epochs, checkpoints and waste'
    end as missing_evidence,
    run.accelerator_hours, run.list_cost_usd, run.effective_cost_usd, run.billed_cost_usd
from run
join longest on longest.billing_currency = run.billing_currency and longest.run_key = run.run_key
join spelling
    on spelling.billing_currency = run.billing_currency and spelling.run_key = run.run_key and spelling.spelling_no = 1
