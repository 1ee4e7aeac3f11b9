-- One row per payer, billing month, invoice, entity, issuer, currency, service, accelerator family and commitment: what
-- of its fee nothing used, in all and up to the moment that fct_invoice_monthly cuts an open month at.
-- partition: billing_period
-- A plan's fee is for an hour: fees for hours to come fall away. A reservation's is for the month: what it costs to date
-- less what used it, as in detail_commitment_utilization_daily; the rest that its fee states includes hours to come.
with cut as (
    select billing_month, payer_account_id, billing_currency, max(cut_at) as cut_at
    from fct_invoice_monthly
    group by billing_month, payer_account_id, billing_currency
),

fee as (
    select fee.billing_month, fee.payer_account_id, fee.billing_currency, fee.commitment_discount_id,
        sum(part_before_usd(fee.commitment_cost_usd, null, fee.fee_started_at, fee.fee_ended_at, cut.cut_at))
            as cost_to_date_usd
    from stg_aws__commitment_fee as fee
    join cut using (billing_month, payer_account_id, billing_currency)
    where cut.cut_at is not null and fee.commitment_kind = 'reserved_instance' and fee.unused_cost_usd is not null
    group by fee.billing_month, fee.payer_account_id, fee.billing_currency, fee.commitment_discount_id
),

used as (
    select billing_month, payer_account_id, billing_currency,
        coalesce(commitment_discount_id, '') as commitment_discount_id, known_sum(amortized_cost_usd) as used_cost_usd
    from fct_charge
    where effective_rule = 'reservation'
    group by all
),

to_date as (
    select fee.*, case when used.billing_month is null then cost_to_date_usd else cost_to_date_usd - used_cost_usd end
            as unused_cost_usd, 'reservation_unused' as effective_rule
    from fee
    left join used using (billing_month, payer_account_id, billing_currency, commitment_discount_id)
),

unused as (
    select
        charge.billing_period, charge.billing_month, charge.payer_account_id, charge.invoice_id, charge.billing_entity,
        charge.invoice_issuer, charge.billing_currency, charge.effective_rule, charge.service,
        charge.accelerator_family, coalesce(charge.commitment_discount_id, '') as commitment_discount_id,
        sum(charge.amortized_cost_usd) as amortized_unused_usd, sum(charge.effective_cost_usd) as effective_unused_usd,
        sum(part_before_usd(charge.amortized_cost_usd, charge.line_class, charge.usage_started_at,
            charge.usage_ended_at, cut.cut_at)) as amortized_before_usd,
        sum(part_before_usd(charge.effective_cost_usd, charge.line_class, charge.usage_started_at,
            charge.usage_ended_at, cut.cut_at)) as effective_before_usd
    from fct_charge as charge
    join cut using (billing_month, payer_account_id, billing_currency)
    where charge.effective_rule in ('savings_plan_unused', 'reservation_unused')
    group by all
),

-- A reservation may have several fees, of which each takes its part.
shared as (
    select unused.*, to_date.billing_month is not null as is_by_use,
        case when count(*) over reservation = 1 then to_date.unused_cost_usd
            when sum(amortized_unused_usd) over reservation = 0 then to_date.unused_cost_usd / count(*) over reservation
            else piece_usd(to_date.unused_cost_usd, 0, amortized_unused_usd, sum(amortized_unused_usd) over reservation)
            end as by_use_usd
    from unused
    left join to_date using (billing_month, payer_account_id, billing_currency, commitment_discount_id, effective_rule)
    window reservation as (
        partition by billing_month, payer_account_id, billing_currency, commitment_discount_id, effective_rule)
)

select
    billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    effective_rule, service, accelerator_family, commitment_discount_id, effective_unused_usd,
    case when is_by_use then by_use_usd else amortized_before_usd end as amortized_unused_to_date_usd,
    case when is_by_use then net_unused_usd(by_use_usd, effective_unused_usd, amortized_unused_usd)
        else effective_before_usd end as effective_unused_to_date_usd
from shared
