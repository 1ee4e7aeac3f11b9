-- One row per payer × account × billing month × service × accelerator family × currency × tag: how much of the cost the
-- tag explains.
-- Only usage of a named resource can carry a tag (facts aws-billing 2.5); taxes, fees and credits are kept apart.
with tag as (
    select 'run_id' as tag
    union all
    select 'owner'
    union all
    select 'team'
),

charge as (
    select payer_account_id, account_id, billing_month, service, accelerator_family, billing_currency,
        sum(case when is_taggable then effective_cost_usd else 0 end) as taggable_cost_usd,
        sum(case when is_taggable then 0 else effective_cost_usd end) as untaggable_cost_usd,
        sum(case when has_run_id_tag then effective_cost_usd else 0 end) as run_id_tagged_cost_usd,
        sum(case when has_owner_tag then effective_cost_usd else 0 end) as owner_tagged_cost_usd,
        sum(case when has_team_tag then effective_cost_usd else 0 end) as team_tagged_cost_usd
    from fct_charge_sum_monthly
    group by payer_account_id, account_id, billing_month, service, accelerator_family, billing_currency
),

covered as (
    select
        charge.*, tag.tag,
        case tag.tag when 'run_id' then run_id_tagged_cost_usd when 'owner' then owner_tagged_cost_usd
            else team_tagged_cost_usd end as tagged_cost_usd
    from charge
    cross join tag
)

select
    payer_account_id, account_id, billing_month, service, accelerator_family, billing_currency, tag,
    taggable_cost_usd,
    tagged_cost_usd,
    taggable_cost_usd - tagged_cost_usd as untagged_cost_usd,
    untaggable_cost_usd,
    ratio(tagged_cost_usd, taggable_cost_usd) as tag_coverage_ratio,
    sum(taggable_cost_usd) over family as family_taggable_cost_usd,
    sum(tagged_cost_usd) over family as family_tagged_cost_usd,
    sum(taggable_cost_usd - tagged_cost_usd) over family as family_untagged_cost_usd,
    ratio(sum(tagged_cost_usd) over family, sum(taggable_cost_usd) over family) as family_tag_coverage_ratio
from covered
window family as (partition by billing_month, tag, accelerator_family, billing_currency)
