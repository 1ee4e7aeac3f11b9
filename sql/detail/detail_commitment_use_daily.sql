-- One row per day × payer × account × region × currency × family × eligibility × commitment: usage that commitments can cover.
-- partition: billing_period
-- Each line is in one row, under the kind `none` where no commitment covered it, so rows add up, and to the same as the hours.
with fee as (
    select distinct payer_account_id, billing_currency, commitment_discount_id, commitment_kind
    from stg_aws__commitment_fee
),

use as (
    select
        charge.billing_period, charge.usage_date, charge.payer_account_id, charge.account_id, charge.region_id, charge.billing_currency,
        commitment_family(charge.accelerator_family) as accelerator_family, charge.commitment_eligibility,
        covering_kind(charge.effective_rule, fee.commitment_kind, charge.commitment_eligibility) as covering_kind,
        case when charge.effective_rule in ('savings_plan', 'reservation') then coalesce(charge.commitment_discount_id, '') else '' end
            as commitment_id,
        coalesce(charge.list_cost_usd, 0) as list_cost_usd, charge.amortized_cost_usd, charge.effective_cost_usd,
        coalesce(charge.instance_hours, 0) as instance_hours,
        case when charge.is_unpriced then charge.line_count else 0 end as unpriced_line_count
    from fct_charge as charge
    left join fee
        on fee.payer_account_id = charge.payer_account_id and fee.billing_currency = charge.billing_currency
        and fee.commitment_discount_id = charge.commitment_discount_id
    where can_be_covered(charge.commitment_eligibility)
)

select
    billing_period, usage_date, payer_account_id, account_id, region_id, billing_currency, accelerator_family, commitment_eligibility,
    coalesce(covering_kind, 'none') as commitment_kind, commitment_id,
    sum(list_cost_usd) as eligible_list_cost_usd,
    sum(case when covering_kind is not null then list_cost_usd else 0 end) as covered_list_cost_usd,
    sum(case when covering_kind is not null then amortized_cost_usd else 0 end) as used_cost_usd,
    sum(case when covering_kind is null then effective_cost_usd else 0 end) as on_demand_cost_usd,
    sum(instance_hours) as eligible_hours,
    sum(case when covering_kind is not null then instance_hours else 0 end) as covered_hours,
    cast(sum(unpriced_line_count) as bigint) as unpriced_line_count
from use
group by billing_period, usage_date, payer_account_id, account_id, region_id, billing_currency, accelerator_family, commitment_eligibility,
    coalesce(covering_kind, 'none'), commitment_id
