-- One row per payer × account × billing month × service × accelerator family × currency × tag: how much of the cost the
-- tag explains.
-- Only usage of a named resource can carry a tag (facts aws-billing 2.5); taxes, fees and credits are kept apart. A sum
-- is null where the bill lacks the cost of a part.
with tag as (
    select 'run_id' as tag
    union all
    select 'owner'
    union all
    select 'team'
),

-- A run_id tag names runs on AWS alone, a team's or an owner's the cost of any provider.
charge as (
    select
        charge.*, tag.tag, charge.is_taggable and (tag.tag <> 'run_id' or not charge.is_other_provider) as can_be_tagged,
        case tag.tag when 'run_id' then has_run_id_tag when 'owner' then has_owner_tag else has_team_tag end as is_tagged
    from fct_charge_sum_monthly as charge
    cross join tag
),

covered as (
    select payer_account_id, account_id, billing_month, service, accelerator_family, billing_currency, tag,
        known_sum(case when can_be_tagged then effective_cost_usd else 0 end) as taggable_cost_usd,
        known_sum(case when can_be_tagged then 0 else effective_cost_usd end) as untaggable_cost_usd,
        known_sum(case when is_tagged then effective_cost_usd else 0 end) as tagged_cost_usd
    from charge
    group by payer_account_id, account_id, billing_month, service, accelerator_family, billing_currency, tag
),

family as (
    select billing_month, tag, accelerator_family, billing_currency,
        known_sum(taggable_cost_usd) as family_taggable_cost_usd, known_sum(tagged_cost_usd) as family_tagged_cost_usd
    from covered
    group by billing_month, tag, accelerator_family, billing_currency
)

select
    payer_account_id, account_id, billing_month, service, accelerator_family, billing_currency, tag,
    taggable_cost_usd,
    tagged_cost_usd,
    taggable_cost_usd - tagged_cost_usd as untagged_cost_usd,
    untaggable_cost_usd,
    ratio(tagged_cost_usd, taggable_cost_usd) as tag_coverage_ratio,
    family_taggable_cost_usd,
    family_tagged_cost_usd,
    family_taggable_cost_usd - family_tagged_cost_usd as family_untagged_cost_usd,
    ratio(family_tagged_cost_usd, family_taggable_cost_usd) as family_tag_coverage_ratio
from covered
join family using (billing_month, tag, accelerator_family, billing_currency)
