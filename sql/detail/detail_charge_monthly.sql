-- One row per billing month, currency, payer, account, provider, service, accelerator family, charge category, charge type and description
-- of a credit, discount or refund: the whole bill.
-- Credits are distinguished by their description: it names the program they come from (facts 2.5). Only here are other
-- providers apart: runs, commitments, capacity and prices are of AWS alone.
select
    charge.billing_month, charge.billing_currency, charge.payer_account_id, charge.account_id,
    coalesce(nullif(charge.billing_entity, ''), 'AWS') as provider, charge.service,
    -- Of another provider's line, its instance type alone shows it.
    case when is_other_provider(charge.billing_entity) then machine.accelerator_family
        else charge.accelerator_family end as accelerator_family,
    charge.charge_category, coalesce(charge.charge_type, '') as charge_type,
    coalesce(charge.charge_description, '') as charge_description,
    sum(charge.line_count) as line_count,
    known_sum(charge.amortized_cost_usd) as amortized_cost_usd,
    known_sum(charge.effective_cost_usd) as effective_cost_usd,
    sum(charge.billed_cost_usd) as billed_cost_usd
from fct_charge_sum_monthly as charge
left join ref_instance_type as machine on machine.instance_type = charge.instance_type
group by all
