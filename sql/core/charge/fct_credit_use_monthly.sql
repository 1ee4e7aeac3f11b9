-- One row per pool of credits × currency × month with a bill: the credits used.
-- A credit's description names its program (facts aws-billing 2.5). It belongs to the first declared pool whose text it contains, else it is
-- a pool of its own.
with used as (
    select payer_account_id, billing_month, billing_currency, coalesce(charge_description, '') as charge_description,
        - sum(billed_cost_usd) as used_usd
    from fct_charge_sum_monthly
    where effective_rule = 'credit'
    group by payer_account_id, billing_month, billing_currency, coalesce(charge_description, '')
),

matched as (
    select used.payer_account_id, used.billing_currency, used.charge_description, min(pool.pool_no) as pool_no
    from (select distinct payer_account_id, billing_currency, charge_description from used) as used
    join declared_credit_pool as pool on pool.billing_currency = used.billing_currency
    join declared_term_payer as payer on payer.term_name = pool.pool_name
    where payer.term_kind = 'credits' and strpos(lower(used.charge_description), lower(pool.matched_text)) > 0
        and coalesce(payer.payer_account_id, used.payer_account_id) = used.payer_account_id
    group by used.payer_account_id, used.billing_currency, used.charge_description
),

named as (
    select
        coalesce(pool.pool_name, nullif(used.charge_description, ''), 'credits without a description') as pool_name,
        used.billing_currency, used.billing_month, pool.pool_no is not null as is_declared, used.used_usd
    from used
    left join matched
        on matched.payer_account_id = used.payer_account_id and matched.billing_currency = used.billing_currency
        and matched.charge_description = used.charge_description
    left join declared_credit_pool as pool on pool.pool_no = matched.pool_no

    union all

    -- A declared pool without any use has rows too.
    select pool_name, billing_currency, cast(null as date), true, 0
    from declared_credit_pool
),

pool as (
    select pool_name, billing_currency, is_declared
    from named
    group by pool_name, billing_currency, is_declared
),

summed as (
    select pool_name, billing_currency, is_declared, billing_month, sum(used_usd) as used_usd
    from named
    group by pool_name, billing_currency, is_declared, billing_month
)

select
    pool.pool_name, pool.billing_currency, month.billing_month, pool.is_declared, month.is_open_month,
    coalesce(summed.used_usd, 0) as used_usd
from pool
join (select distinct billing_month, billing_currency, is_open_month from fct_bill_total_monthly) as month on month.billing_currency = pool.billing_currency
left join summed
    on summed.pool_name = pool.pool_name and summed.billing_currency = pool.billing_currency
    and summed.is_declared = pool.is_declared and summed.billing_month = month.billing_month
