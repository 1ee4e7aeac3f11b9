-- One row per day × payer × currency × commitment: what it cost, what used it, and what that saved.
-- The terms are those of its fees on any bill; where the bill has none, those of AWS's own answer. Fees of an open
-- month for hours to come are cut off, as in fct_invoice_monthly. What rests on use that the bill does not show is null.
with terms as (
    select
        fee.payer_account_id, fee.billing_currency, fee.commitment_discount_id, fee.commitment_kind,
        max(fee.account_id) as account_id,
        coalesce(max(fee.payment_option), max(answer.payment_option)) as payment_option,
        coalesce(max(fee.purchase_term), max(answer.purchase_term)) as purchase_term,
        coalesce(max(fee.region_id), max(answer.region_id)) as region_id,
        coalesce(max(fee.instance_family), max(answer.instance_family)) as instance_family,
        coalesce(max(fee.started_at), max(answer.started_at)) as started_at,
        coalesce(max(fee.ended_at), max(answer.ended_at)) as ended_at
    from stg_aws__commitment_fee as fee
    left join stg_aws__commitment as answer on answer.commitment_key = commitment_key(fee.commitment_discount_id)
    group by fee.payer_account_id, fee.billing_currency, fee.commitment_discount_id, fee.commitment_kind
),

fee as (
    select
        fee.*, unix_ms(cut.cut_at) as cut_ms,
        -- A fee without a length is for an hour. So is one longer than any term that AWS sells.
        case when fee.fee_ended_at > fee.fee_started_at and fee.fee_ended_at <= fee.fee_started_at + interval 1100 day
            then fee.fee_ended_at else fee.fee_started_at + interval 1 hour end as held_until
    from stg_aws__commitment_fee as fee
    left join (select billing_month, payer_account_id, billing_currency, max(cut_at) as cut_at
            from fct_invoice_monthly group by all) as cut
        using (billing_month, payer_account_id, billing_currency)
),

fee_day as (
    select
        *, unix_ms(fee_started_at) as started_ms, unix_ms(held_until) as ended_ms,
        unnest(generate_series(date_trunc('day', fee_started_at), held_until, interval 1 day)) as day_at
    from fee
),

part as (
    select
        *, ended_ms - started_ms as whole_ms, greatest(unix_ms(day_at) - started_ms, 0) as lower_ms,
        least(unix_ms(day_at) + 86400000, ended_ms, coalesce(cut_ms, ended_ms)) - started_ms as upper_ms
    from fee_day
),

-- The fee of a plan has what used it in the hour. That of a reservation is monthly: the lines it covers have its use.
entry as (
    select
        billing_month, cast(day_at as date) as usage_date, payer_account_id, billing_currency, commitment_discount_id,
        commitment_kind,
        case when commitment_cost_usd is not null
            then piece_usd(commitment_cost_usd, lower_ms, upper_ms, whole_ms) end as commitment_cost_usd,
        case when used_cost_usd is not null then piece_usd(used_cost_usd, lower_ms, upper_ms, whole_ms) end
            as fee_used_cost_usd,
        -- What the lines it covers must explain.
        piece_usd(owed_cost_usd, lower_ms, upper_ms, whole_ms) as owed_cost_usd,
        unused_cost_usd is null as is_silent, cut_ms is null as is_closed,
        0 as covered_list_cost_usd, 0 as covered_cost_usd, 0 as covered_hours
    from part
    where upper_ms > lower_ms

    union all

    select
        charge.billing_month, charge.usage_date, charge.payer_account_id, charge.billing_currency,
        coalesce(charge.commitment_discount_id, ''), coalesce(terms.commitment_kind,
            case charge.effective_rule when 'reservation' then 'reserved_instance' else 'savings_plan' end),
        null, null, - coalesce(charge.amortized_cost_usd, 0), false, true, charge.list_cost_usd,
        charge.amortized_cost_usd, charge.instance_hours
    from fct_charge as charge
    left join terms
        on terms.payer_account_id = charge.payer_account_id and terms.billing_currency = charge.billing_currency
        and terms.commitment_discount_id = coalesce(charge.commitment_discount_id, '')
        and (terms.commitment_kind = 'reserved_instance') = (charge.effective_rule = 'reservation')
    where charge.effective_rule in ('savings_plan', 'reservation')
),

day as (
    select
        billing_month, usage_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
        cast(usage_date + interval '1' day as timestamp) as day_ended_at,
        case when not max(is_silent and commitment_cost_usd is null) then sum(commitment_cost_usd) end
            as commitment_cost_usd,
        sum(fee_used_cost_usd) as fee_used_cost_usd,
        sum(owed_cost_usd) as owed_cost_usd,
        sum(sum(owed_cost_usd)) over month > 0.01
            and (min(min(is_closed)) over month or max(max(is_silent)) over month) as is_use_missing,
        known_sum(covered_list_cost_usd) as line_list_cost_usd,
        known_sum(covered_cost_usd) as covered_cost_usd, sum(covered_hours) as covered_hours
    from entry
    group by billing_month, usage_date, payer_account_id, billing_currency, commitment_discount_id, commitment_kind
    window month as (partition by billing_month, payer_account_id, billing_currency, commitment_discount_id, commitment_kind)
),

known as (
    select
        *,
        case when not is_use_missing then coalesce(fee_used_cost_usd, covered_cost_usd)
            when commitment_cost_usd is not null then fee_used_cost_usd end as used_cost_usd,
        case when not is_use_missing then line_list_cost_usd end as covered_list_cost_usd
    from day
)

select
    day.billing_month, day.usage_date, day.payer_account_id, day.billing_currency,
    day.commitment_discount_id as commitment_id, day.commitment_kind, terms.account_id, terms.region_id,
    terms.instance_family, terms.payment_option, terms.purchase_term, terms.started_at, terms.ended_at,
    day.commitment_cost_usd, day.used_cost_usd, day.commitment_cost_usd - day.used_cost_usd as unused_cost_usd,
    ratio(day.used_cost_usd, day.commitment_cost_usd) as utilization_ratio,
    day.covered_hours, day.covered_cost_usd, day.covered_list_cost_usd,
    day.covered_list_cost_usd - day.commitment_cost_usd as net_savings_usd,
    -- 1 - discount: used less than this, the commitment costs more than the list price of what it covered.
    ratio(day.covered_cost_usd, day.covered_list_cost_usd) as break_even_utilization_ratio,
    ratio(day.commitment_cost_usd, day.covered_list_cost_usd) as effective_rate_ratio,
    lost_savings_reason(day.commitment_cost_usd, day.used_cost_usd, day.covered_cost_usd, day.covered_list_cost_usd,
        day.is_use_missing) as lost_savings_reason,
    case when day.is_use_missing then day.owed_cost_usd else 0 end as unallocated_fee_usd,
    days_left(day.day_ended_at, terms.ended_at) as days_to_expiry,
    coalesce(terms.ended_at <= day.day_ended_at, false) as is_expired
from known as day
left join terms using (payer_account_id, billing_currency, commitment_discount_id, commitment_kind)
