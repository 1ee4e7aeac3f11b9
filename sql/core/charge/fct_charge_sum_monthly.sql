-- One row per delivered month and set of attributes that monthly tables group charges by: lines and costs.
-- partition: billing_period
-- Tables over all months add up these rows; a month delivered again changes its own rows only.
select
    billing_period, billing_month, payer_account_id, account_id, billing_currency, billing_entity,
    is_other_provider(billing_entity) as is_other_provider, charge_category, charge_type, effective_rule,
    charge_description, service, accelerator_family,
    -- Of another provider's line, its instance type alone shows the family (detail_charge_monthly).
    case when is_other_provider(billing_entity) then instance_type end as instance_type,
    case when effective_rule in ('savings_plan', 'reservation') then commitment_discount_id end
        as commitment_discount_id,
    storage_bucket_id, is_taggable, has_run_id_tag, has_owner_tag, has_team_tag, is_cost_unknown,
    sum(line_count) as line_count,
    sum(stored_gib_months) as stored_gib_months,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(amortized_cost_usd) as amortized_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_charge
group by all
