-- One row per payer, currency, commitment and day: its cost, what used it, and the list price of that.
-- partition: billing_period
-- Fees of an open month for hours to come are cut off, as in fct_invoice_monthly.
with cut as (
    select billing_month, payer_account_id, billing_currency, max(cut_at) as cut_at
    from fct_invoice_monthly
    group by billing_month, payer_account_id, billing_currency
),

fee as (
    select
        fee.*, fee.commitment_kind = 'reserved_instance' as is_reservation,
        -- A fee without a length is for an hour. So is one longer than any term that AWS sells.
        case when fee.fee_ended_at > fee.fee_started_at and fee.fee_ended_at <= fee.fee_started_at + interval 1100 day
            then fee.fee_ended_at else fee.fee_started_at + interval 1 hour end as held_until,
        unix_ms(cut.cut_at) as cut_ms
    from stg_aws__commitment_fee as fee
    left join cut
        on cut.billing_month = fee.billing_month and cut.payer_account_id = fee.payer_account_id
        and cut.billing_currency = fee.billing_currency
),

slice as (
    select *, unix_ms(fee_started_at) as started_ms, unix_ms(held_until) as ended_ms,
        unnest(generate_series(date_trunc('day', fee_started_at), held_until, interval 1 day)) as day_at
    from fee
),

part as (
    select *,
        greatest(unix_ms(day_at) - started_ms, 0) as lower_ms,
        least(unix_ms(day_at) + 86400000, ended_ms, coalesce(cut_ms, ended_ms)) - started_ms as upper_ms,
        ended_ms - started_ms as whole_ms
    from slice
),

fee_day as (
    select
        billing_period, billing_month, cast(day_at as date) as usage_date, payer_account_id, billing_currency, commitment_discount_id,
        commitment_kind,
        piece_usd(commitment_cost_usd, lower_ms, upper_ms, whole_ms) as commitment_cost_usd,
        -- The fee of a plan has what used it in the hour. The fee of a reservation is monthly: the lines it covers have what used it.
        case when used_cost_usd is not null then piece_usd(used_cost_usd, lower_ms, upper_ms, whole_ms) end as fee_used_cost_usd
    from part
    where upper_ms > lower_ms
),

covered as (
    select
        billing_period, billing_month, usage_date, payer_account_id, billing_currency, coalesce(commitment_discount_id, '') as commitment_discount_id,
        effective_rule,
        known_sum(list_cost_usd) as covered_list_cost_usd,
        sum(amortized_cost_usd) as covered_cost_usd,
        sum(instance_hours) as covered_hours
    from fct_charge
    where effective_rule in ('savings_plan', 'reservation')
    group by all
),

known as (
    select distinct payer_account_id, billing_currency, commitment_discount_id, commitment_kind from stg_aws__commitment_fee
),

entry as (
    select billing_period, billing_month, usage_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
        commitment_cost_usd, fee_used_cost_usd,
        cast(0 as decimal(38, 10)) as covered_list_cost_usd, cast(0 as decimal(38, 10)) as covered_cost_usd,
        cast(0 as decimal(38, 10)) as covered_hours
    from fee_day

    union all

    select
        covered.billing_period, covered.billing_month, covered.usage_date, covered.payer_account_id, covered.billing_currency,
        covered.commitment_discount_id,
        coalesce(known.commitment_kind, case when covered.effective_rule = 'reservation' then 'reserved_instance' else 'savings_plan' end),
        null, null, covered.covered_list_cost_usd, covered.covered_cost_usd, covered.covered_hours
    from covered
    left join known
        on known.payer_account_id = covered.payer_account_id and known.billing_currency = covered.billing_currency
        and known.commitment_discount_id = covered.commitment_discount_id
)

select
    billing_period, billing_month, usage_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
    sum(commitment_cost_usd) as commitment_cost_usd,
    coalesce(sum(fee_used_cost_usd), sum(covered_cost_usd)) as used_cost_usd,
    sum(commitment_cost_usd) - coalesce(sum(fee_used_cost_usd), sum(covered_cost_usd)) as unused_cost_usd,
    known_sum(covered_list_cost_usd) as covered_list_cost_usd,
    sum(covered_cost_usd) as covered_cost_usd,
    sum(covered_hours) as covered_hours
from entry
group by billing_period, billing_month, usage_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind
