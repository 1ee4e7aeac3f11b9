-- One row per billing month × currency × instance type: accelerator spend no run explains, the worst case of a comparison.
select
    billing_month, billing_currency, instance_type,
    known_sum(list_cost_usd) as list_cost_usd,
    sum(effective_cost_usd) as effective_cost_usd,
    sum(billed_cost_usd) as billed_cost_usd
from fct_ledger
where bucket = 'unattributed' and instance_type is not null
group by billing_month, billing_currency, instance_type
