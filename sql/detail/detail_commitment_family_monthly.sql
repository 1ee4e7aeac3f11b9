-- One row per billing month × payer × currency × commitment × accelerator family: the part of its cost that the family
-- used.
-- Four rows per commitment, also where nothing used it; the rest of the cost was unused.
with cost as (
    select billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind,
        known_sum(commitment_cost_usd) as commitment_cost_usd,
        sum(unallocated_fee_usd) > 0 as is_use_missing
    from detail_commitment_utilization_daily
    group by billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind
),

part as (
    select cost.*, family.accelerator_family
    from cost
    cross join (values ('gpu'), ('trainium'), ('inferentia'), ('other')) as family(accelerator_family)
),

used as (
    select
        billing_month, payer_account_id, billing_currency, coalesce(commitment_discount_id, '') as commitment_id,
        commitment_family(accelerator_family) as accelerator_family,
        known_sum(amortized_cost_usd) as used_cost_usd,
        known_sum(list_cost_usd) as covered_list_cost_usd
    from fct_charge_sum_monthly
    where effective_rule in ('savings_plan', 'reservation')
    group by all
),

joined as (
    select part.*, case when part.is_use_missing then null when used.billing_month is null then 0
            else used.used_cost_usd end as used_cost_usd,
        case when part.is_use_missing then null when used.billing_month is null then 0
            else used.covered_list_cost_usd end as covered_list_cost_usd
    from part
    left join used
        on used.billing_month = part.billing_month and used.payer_account_id = part.payer_account_id
        and used.billing_currency = part.billing_currency and used.commitment_id = part.commitment_id
        and used.accelerator_family = part.accelerator_family
)

select
    billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind, accelerator_family,
    known_sum(commitment_cost_usd) as commitment_cost_usd,
    known_sum(used_cost_usd) as used_cost_usd,
    utilization_ratio(used_cost_usd, commitment_cost_usd) as utilization_ratio,
    known_sum(covered_list_cost_usd) as covered_list_cost_usd
from joined
group by billing_month, payer_account_id, billing_currency, commitment_id, commitment_kind, accelerator_family
