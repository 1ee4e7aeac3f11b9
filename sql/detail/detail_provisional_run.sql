-- One row per currency and value of a run tag that names no recorded run: what it cost, and why it may be no run.
-- What is probably a run is charged in the ledger's bucket `run` with evidence `tag_only`, and with it the storage and
-- network that carry its tag, from its first to its last day; what is not stays `unattributed`. Until its events
-- arrive it is in no comparison, baseline, goodput, waste or count of runs.
select
    ledger.billing_currency, named.run_id, 'tag_only' as evidence, named.spelling_count,
    min(coalesce(ledger.hour_started_at, cast(ledger.usage_date as timestamp)))
        filter (where ledger.accelerator_family <> 'none') as started_at,
    -- A line of an export by the day has no hours: it lasts to the end of its day.
    max(coalesce(ledger.hour_started_at + interval 1 hour, cast(ledger.usage_date as timestamp) + interval 1 day))
        filter (where ledger.accelerator_family <> 'none') as ended_at,
    count(distinct ledger.resource_id) filter (where ledger.accelerator_family <> 'none') as resource_count,
    case when count(distinct ledger.instance_type) = 1 then max(ledger.instance_type) else 'mixed' end as instance_type,
    case when count(distinct nullif(ledger.accelerator_family, 'none')) = 1
        then max(nullif(ledger.accelerator_family, 'none')) else 'mixed' end as accelerator_family,
    max(ledger.tag_owner) as owner, max(ledger.team) as team, named.longest_use_day_count,
    named.is_probably_run, named.missing_evidence,
    known_sum(ledger.accelerator_hours) as accelerator_hours,
    known_sum(ledger.list_cost_usd) as list_cost_usd,
    known_sum(ledger.effective_cost_usd) as effective_cost_usd,
    sum(ledger.billed_cost_usd) as billed_cost_usd
from fct_ledger as ledger
join policy on policy.has_provisional_runs
join dim_provisional_run as named on named.run_key = folded(ledger.tag_run_id)
where ledger.bucket = 'unattributed' or ledger.evidence = 'tag_only'
group by ledger.billing_currency, named.run_id, named.spelling_count, named.longest_use_day_count,
    named.is_probably_run, named.missing_evidence
