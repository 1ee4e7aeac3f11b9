-- One row per payer × billing month × currency × scope: the effective savings rate, what makes it, and why where it is negative.
with scope as (
    select
        billing_month, payer_account_id, billing_currency, savings_scope, scope_label,
        sum(list_cost_usd) as list_cost_usd,
        sum(usage_cost_usd) as usage_cost_usd,
        sum(unused_cost_usd) as unused_cost_usd,
        effective_savings_rate_ratio(list_cost_usd, usage_cost_usd, unused_cost_usd) as effective_savings_rate_ratio,
        sum(unpriced_cost_usd) as unpriced_cost_usd
    from fct_savings_scope_monthly
    group by billing_month, payer_account_id, billing_currency, savings_scope, scope_label
)

select
    billing_month, payer_account_id, billing_currency, savings_scope, scope_label,
    list_cost_usd, usage_cost_usd, unused_cost_usd,
    list_cost_usd - usage_cost_usd - unused_cost_usd as net_savings_usd,
    effective_savings_rate_ratio,
    case
        when usage_cost_usd + unused_cost_usd <= list_cost_usd then null
        when list_cost_usd = 0 then 'commitments without any use in the scope'
        when usage_cost_usd > list_cost_usd then 'usage costs more than its list price: prices fell below the rates that were bought'
        else 'unused commitments cost more than the rates save'
    end as lost_savings_reason,
    unpriced_cost_usd
from scope
