-- One row per billing month, currency, payer, provider, account, service and accelerator family: the whole bill.
-- Only here are other providers apart: runs, commitments, capacity and prices are of AWS alone.
select
    charge.billing_month, charge.billing_currency, charge.payer_account_id,
    coalesce(nullif(charge.billing_entity, ''), 'AWS') as provider, charge.account_id, charge.service,
    -- Of another provider's line, its instance type alone shows it.
    case when is_other_provider(charge.billing_entity) then machine.accelerator_family
        else charge.accelerator_family end as accelerator_family,
    sum(charge.line_count) as line_count,
    known_sum(charge.effective_cost_usd) as effective_cost_usd,
    sum(charge.billed_cost_usd) as billed_cost_usd
from fct_charge as charge
left join ref_instance_type as machine on machine.instance_type = charge.instance_type
group by all
