-- One row per day × resource whose accelerator spend no run explains, with the best guess at its owner.
with line as (
    select
        usage_date, date_trunc('month', usage_date) as usage_month, payer_account_id, account_id, billing_currency,
        resource_id, coalesce(job_name(resource_id), resource_id) as claim_key,
        coalesce(instance_type, 'unknown') as instance_type, accelerator_family, region_id,
        max(tag_run_id) as tagged_run_id, max(tag_owner) as tagged_owner, max(tag_team) as tagged_team,
        sum(accelerator_hours) as accelerator_hours, known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd
    from fct_ledger
    where bucket = 'unattributed'
    group by all
),

used as (
    select
        date_trunc('month', ledger.usage_date) as usage_month, ledger.payer_account_id, ledger.account_id, run.owner,
        ledger.billing_currency, ledger.instance_type, run.team, sum(ledger.effective_cost_usd) as effective_cost_usd
    from fct_ledger as ledger
    join dim_run as run on run.run_id = ledger.run_id
    where ledger.bucket = 'run' and ledger.instance_type is not null and coalesce(run.owner, run.team) is not null
    group by all
),

usual as (
    select *
    from (select *, sum(effective_cost_usd) over (partition by usage_month, payer_account_id, account_id,
        billing_currency, instance_type, team) as team_cost_usd from used) as by_team
    qualify row_number() over (partition by usage_month, payer_account_id, account_id, billing_currency, instance_type
        order by team_cost_usd desc, team, effective_cost_usd desc, owner) = 1
),

seen as (
    select
        line.claim_key, line.usage_date, run.owner, run.team, unix_ms(left_at) - unix_ms(joined_at) as stay_ms,
        line.usage_date between cast(joined_at as date) and cast(left_at as date) as is_same_day,
        line.usage_month between date_trunc('month', joined_at) and date_trunc('month', left_at) as is_same_month
    from line
    join stg_tracker__resource as stay on stay.resource_id = line.claim_key
    join dim_run as run on run.run_id = stay.run_id
    -- The nearest run wins; of several the one that stayed longest, then by name, so that a rebuild guesses alike.
    qualify row_number() over (partition by line.claim_key, line.usage_date
        order by is_same_day desc, is_same_month desc, stay_ms desc, run.team, run.owner) = 1
),

-- The recorded run that the tag names, or why none is.
named as (
    select tag.tagged_run_id, run.run_id, run.owner, run.team, provisional.missing_evidence
    from (select distinct tagged_run_id from line where tagged_run_id is not null) as tag
    left join dim_provisional_run as provisional on provisional.run_key = folded(tag.tagged_run_id)
    left join dim_run as run on folded(run.run_id) = folded(tag.tagged_run_id)
    qualify row_number() over (partition by tag.tagged_run_id order by run.run_id <> tag.tagged_run_id, run.run_id) = 1
),

-- Runs that describe such a machine and name none, where more than they fit the description.
fitting_run as (
    select
        line.claim_key, line.usage_date, run.run_id, run.owner, run.team, match_kind, machine_count, fit_count
    from line
    join fct_resource_claim_monthly as match
        on match.resource_id = line.claim_key
        and match.started_ms < unix_ms(cast(line.usage_date as timestamp)) + 86400000
        and match.ended_ms > unix_ms(cast(line.usage_date as timestamp))
    join dim_run as run on run.run_id = match.run_id
    where match.match_kind in ('rivals', 'too_many')
    qualify row_number() over (partition by line.claim_key, line.usage_date
        order by match.ended_ms - match.started_ms desc, match.run_id, match.attempt_no) = 1
),

guessed as (
    select
        line.*, named.run_id as named_run_id, named.missing_evidence as tag_evidence, named.owner as named_owner, named.team as named_team,
        seen.is_same_month, seen.is_same_day, seen.owner as seen_owner, seen.team as seen_team,
        fitting.run_id as fitting_run_id, fitting.owner as fitting_owner, fitting.team as fitting_team,
        match_kind, machine_count, fit_count, usual.owner as usual_owner, usual.team as usual_team,
        case
            when coalesce(line.tagged_owner, line.tagged_team) is not null then 'tag'
            when coalesce(named.owner, named.team) is not null then 'run of the tag'
            when seen.is_same_month and coalesce(seen.owner, seen.team) is not null then 'run seen'
            when coalesce(fitting.owner, fitting.team) is not null then 'run that fits'
            when coalesce(usual.owner, usual.team) is not null then 'usual user'
        end as rung
    from line
    left join seen using (claim_key, usage_date)
    left join fitting_run as fitting using (claim_key, usage_date)
    left join usual using (usage_month, payer_account_id, account_id, billing_currency, instance_type)
    left join named using (tagged_run_id)
)

select
    usage_date, payer_account_id, account_id, billing_currency, coalesce(resource_id, 'no resource id') as resource_id,
    instance_type, accelerator_family, region_id, tagged_run_id, tagged_owner, tagged_team,
    case rung when 'tag' then tagged_owner when 'run of the tag' then named_owner when 'run seen' then seen_owner
        when 'run that fits' then fitting_owner when 'usual user' then usual_owner end as likely_owner,
    case rung when 'tag' then tagged_team when 'run of the tag' then named_team when 'run seen' then seen_team
        when 'run that fits' then fitting_team when 'usual user' then usual_team end as likely_team,
    case
        when rung = 'tag' then 'the tags of the line itself'
        when rung = 'run of the tag' then 'the run that the tag names'
        when rung = 'run seen' and is_same_day then 'a run seen on this resource that day'
        when rung = 'run seen' then 'a run seen on this resource that month'
        when rung = 'run that fits' then 'a run that day that describes such a machine and names none'
        when rung = 'usual user' then 'most of the run cost on this instance type in this account that month'
        else 'no guess: no tag, no run on this resource and none on its type in this account that month'
    end as owner_guess_basis,
    case
        when resource_id is null then 'the bill names no resource: switch on resource ids in the export'
        when named_run_id is not null then 'the tag names a run that was not alive then: the clocks do not overlap'
        when tag_evidence is not null then tag_evidence
        when match_kind = 'rivals'
            then 'run ' || fitting_run_id || ' and others describe such a machine, and none names it: record its id'
        when match_kind = 'too_many' then 'run ' || fitting_run_id || ' describes ' || cast(machine_count as varchar)
            || ' such, and ' || cast(fit_count as varchar) || ' fit: record the ids it used'
        when is_same_month
            then 'a run names this resource, but the bill has no hours to share: ask for an hourly export'
        when not is_same_month then 'a run names this resource, but not in this month: the clocks do not overlap'
        when coalesce(tagged_owner, tagged_team) is not null
            then 'no run names this resource: ask the tagged ' || case when tagged_owner is null then 'team' else 'owner' end
        else 'no run and no tag names this resource' end as missing_evidence, accelerator_hours, list_cost_usd, effective_cost_usd, billed_cost_usd
from guessed
