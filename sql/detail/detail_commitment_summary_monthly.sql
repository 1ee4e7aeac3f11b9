-- One row per month × currency × kind × payer, account and region × family × reason, and per sum of these: coverage and utilization.
-- 'all' stands where a column is summed over. The kind 'all' counts each use once; kinds overlap, because what ran on demand is
-- eligible for each kind that could cover it; the kind 'none' is what no commitment can cover, by reason.
with use as (
    select date_trunc('month', usage_date) as month_date, *
    from detail_commitment_use_daily
),

kind as (
    select date_trunc('month', usage_date) as month_date, *
    from mart_commitment_coverage_daily
),

part as (
    select
        month_date, billing_currency, 'all' as commitment_kind, 'all' as outside_reason,
        case when grouping(payer_account_id) = 0 then payer_account_id else 'all' end as payer_account_id,
        case when grouping(account_id) = 0 then account_id else 'all' end as account_id,
        case when grouping(region_id) = 0 then region_id else 'all' end as region_id,
        case when grouping(accelerator_family) = 0 then accelerator_family else 'all' end as accelerator_family,
        sum(eligible_list_cost_usd) as eligible_list_cost_usd,
        sum(covered_list_cost_usd) as covered_list_cost_usd,
        null as other_covered_list_cost_usd,
        known_sum(on_demand_cost_usd) as on_demand_cost_usd,
        sum(unpriced_line_count) as unpriced_line_count,
        null as outside_cost_usd,
        null as commitment_count, null as commitment_cost_usd, null as used_cost_usd, null as unused_cost_usd, null as net_savings_usd
    from use
    where is_eligible
    group by grouping sets (
        (month_date, billing_currency),
        (month_date, billing_currency, accelerator_family),
        (month_date, billing_currency, payer_account_id, account_id, region_id),
        (month_date, billing_currency, payer_account_id, account_id, region_id, accelerator_family)
    )

    union all

    select
        month_date, billing_currency, commitment_kind, 'all', 'all', 'all', 'all',
        case when grouping(accelerator_family) = 0 then accelerator_family else 'all' end,
        sum(eligible_list_cost_usd), sum(covered_list_cost_usd), sum(other_covered_list_cost_usd), known_sum(on_demand_cost_usd),
        sum(unpriced_line_count), null, null, null, null, null, null
    from kind
    group by grouping sets (
        (month_date, billing_currency, commitment_kind),
        (month_date, billing_currency, commitment_kind, accelerator_family)
    )

    union all

    select
        month_date, billing_currency, 'none', reason, 'all', 'all', 'all', 'all',
        null, null, null, null, null, known_sum(effective_cost_usd), null, null, null, null, null
    from use
    where not is_eligible and commitment_eligibility <> 'capacity_block'
    group by month_date, billing_currency, reason

    union all

    -- The bill charges a Capacity Block by its fee, and its hours at nothing.
    select
        date_trunc('month', ledger.usage_date), ledger.billing_currency, 'none', rule.reason, 'all', 'all', 'all', 'all',
        null, null, null, null, null, known_sum(ledger.effective_cost_usd), null, null, null, null, null
    from fct_ledger as ledger
    join ref_commitment_eligibility as rule on rule.commitment_eligibility = ledger.market
    where ledger.market = 'capacity_block' and ledger.bucket <> 'capacity_unused'
    group by date_trunc('month', ledger.usage_date), ledger.billing_currency, rule.reason

    union all

    select
        billing_month, billing_currency, 'all', 'all', 'all', 'all', 'all', 'all', null, null, null, null, null, null,
        count(*), known_sum(commitment_cost_usd), known_sum(used_cost_usd), known_sum(unused_cost_usd), known_sum(net_savings_usd)
    from mart_commitment_utilization_monthly
    -- The bill never shows what used capacity of Bedrock: it would make the use of all others unknown.
    where commitment_kind not like 'bedrock_%'
    group by billing_month, billing_currency

    union all

    select
        billing_month, billing_currency, 'all', 'all', 'all', 'all', 'all', accelerator_family, null, null, null, null, null, null,
        count(*), known_sum(commitment_cost_usd), known_sum(used_cost_usd), null, null
    from detail_commitment_family_monthly
    group by billing_month, billing_currency, accelerator_family
),

summed as (
    select
        month_date, billing_currency, commitment_kind, payer_account_id, account_id, region_id, accelerator_family, outside_reason,
        sum(eligible_list_cost_usd) as eligible_list_cost_usd,
        sum(covered_list_cost_usd) as covered_list_cost_usd,
        sum(other_covered_list_cost_usd) as other_covered_list_cost_usd,
        sum(on_demand_cost_usd) as on_demand_cost_usd,
        sum(unpriced_line_count) as unpriced_line_count,
        sum(outside_cost_usd) as outside_cost_usd,
        sum(commitment_count) as commitment_count,
        sum(commitment_cost_usd) as commitment_cost_usd,
        sum(used_cost_usd) as used_cost_usd,
        sum(unused_cost_usd) as unused_cost_usd,
        sum(net_savings_usd) as net_savings_usd
    from part
    group by month_date, billing_currency, commitment_kind, payer_account_id, account_id, region_id, accelerator_family, outside_reason
)

select
    month_date, billing_currency, commitment_kind, payer_account_id, account_id, region_id, accelerator_family, outside_reason,
    eligible_list_cost_usd, covered_list_cost_usd, other_covered_list_cost_usd, on_demand_cost_usd, unpriced_line_count,
    outside_cost_usd, commitment_count, commitment_cost_usd, used_cost_usd, unused_cost_usd, net_savings_usd,
    case when unpriced_line_count = 0 then ratio(covered_list_cost_usd, eligible_list_cost_usd) end as coverage_ratio,
    case when unpriced_line_count = 0
        then ratio(covered_list_cost_usd, eligible_list_cost_usd + other_covered_list_cost_usd) end
        as coverage_with_other_kinds_ratio,
    ratio(used_cost_usd, commitment_cost_usd) as utilization_ratio
from summed
