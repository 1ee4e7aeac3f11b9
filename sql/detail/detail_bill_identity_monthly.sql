-- One row per payer × billing month × currency × identity of a bill (facts aws-billing 2.4): whether its sides agree.
with amortized as (
    select payer_account_id, billing_month, billing_currency, sum(amortized_cost_usd) as amortized_cost_usd
    from fct_charge_sum_monthly
    group by payer_account_id, billing_month, billing_currency
),

bill as (
    select
        total.*, amortized.amortized_cost_usd,
        greatest(policy.identity_tolerance_usd, total.line_count * cast(0.000000001 as decimal(10, 9)))
            as tolerance_usd,
        -- Discounts stand in rows of their own, in the line they are on, or both (identity 4 shows which).
        case
            when abs(net_billed_cost_usd - billed_cost_usd) <= policy.identity_tolerance_usd then 'rows'
            when not has_discount_line then 'in line'
            when abs(net_billed_cost_usd - billed_cost_usd - in_line_discount_usd) <= policy.identity_tolerance_usd
                then 'rows and in line'
            else 'rows'
        end as convention
    from fct_bill_total_monthly as total
    join amortized using (payer_account_id, billing_month, billing_currency)
    cross join policy
),

plan_hour as (
    select payer_account_id, billing_month, billing_currency, commitment_discount_id, usage_started_at,
        sum(covered_cost_usd) as left_usd, sum(used_commitment_usd) as right_usd,
        sum(total_commitment_usd) <> 0 as is_comparable,
        sum(used_commitment_usd) - sum(total_commitment_usd) as excess_usd
    from stg_aws__savings_plan_hourly
    group by payer_account_id, billing_month, billing_currency, commitment_discount_id, usage_started_at
),

machine_hour as (
    select payer_account_id, billing_month, billing_currency, resource_id, hour_started_at,
        sum(split_effective_cost_usd) as left_usd, max(machine_effective_cost_usd) as right_usd,
        max(machine_effective_cost_usd) is not null and count(split_effective_cost_usd) = count(*) as is_comparable
    from stg_aws__pod_hourly
    where '' not in (pod_id, resource_id)
    group by payer_account_id, billing_month, billing_currency, resource_id, hour_started_at
),

part as (
    select 2 as identity, payer_account_id, billing_month, billing_currency, left_usd, right_usd, is_comparable, excess_usd
    from plan_hour
    union all
    select 6, payer_account_id, billing_month, billing_currency, left_usd, right_usd, is_comparable, 0 from machine_hour
),

parted as (
    select payer_account_id, billing_month, billing_currency, identity, count(*) as part_count,
        sum(case when is_comparable then 1 else 0 end) as comparable_count,
        sum(case when is_comparable and (abs(left_usd - right_usd) > policy.identity_tolerance_usd
            or excess_usd > policy.identity_tolerance_usd) then 1 else 0 end) as differing_count,
        sum(case when is_comparable then left_usd else 0 end) as left_usd,
        sum(case when is_comparable then right_usd else 0 end) as right_usd
    from part
    cross join policy
    group by payer_account_id, billing_month, billing_currency, identity
),

known as (
    select * from (values
        (1, 'billed cost equals amortized cost with upfront fees in the month in which they were billed'),
        (2, 'covered usage equals the used commitment and never exceeds the commitment, hour by hour'),
        (3, 'usage covered by Savings Plans and its negation cancel'),
        (4, 'billed cost equals the net columns without discount rows'),
        (5, 'amortized cost equals billed cost if nothing is paid upfront'),
        (6, 'pod cost plus unused node cost equals node cost, hour by hour')
    ) as named(identity, statement)
),

side as (
    select
        bill.*, known.identity, known.statement, parted.part_count, parted.differing_count,
        case known.identity when 1 then bill.billed_cost_usd when 3 then bill.savings_plan_offset_usd
            when 4 then bill.net_billed_cost_usd when 5 then bill.amortized_cost_usd
            else coalesce(parted.left_usd, 0) end as left_usd,
        case known.identity when 1 then bill.amortized_cost_usd + bill.amortized_upfront_usd + bill.upfront_fee_usd
            when 3 then 0 when 5 then bill.billed_cost_usd
            when 4 then bill.billed_cost_usd
                + case when bill.convention = 'rows' then 0 else bill.in_line_discount_usd end
            else coalesce(parted.right_usd, 0) end as right_usd,
        case known.identity when 1 then bill.has_commitment or bill.has_upfront_fee
            when 3 then bill.has_savings_plan_usage when 4 then bill.has_net_costs
            when 5 then bill.has_commitment and not bill.has_upfront_fee
            else parted.part_count is not null end as is_applicable,
        case known.identity when 3 then bill.lacks_negation
            when 4 then bill.convention = 'in line' and bill.in_line_discount_usd = 0
            when 1 then bill.lacks_commitment_fee when 5 then bill.lacks_commitment_fee
            else coalesce(parted.comparable_count, 0) = 0 end as is_incomplete
    from bill
    cross join known
    left join parted using (payer_account_id, billing_month, billing_currency, identity)
),

judged as (
    select *, case when not is_applicable then 'not applicable' when is_open then 'open'
        -- Of a FOCUS bill nothing but the sums shows that what a fee leaves unused is there.
        when is_incomplete and (identity not in (1, 5) or abs(left_usd - right_usd) > tolerance_usd) then 'incomplete'
        when coalesce(differing_count > 0, abs(left_usd - right_usd) > tolerance_usd)
        then 'differs' else 'holds' end as status
    from side
)

select
    payer_account_id, billing_month, billing_currency as currency, identity, statement,
    case when is_applicable then left_usd end as left_usd, case when is_applicable then right_usd end as right_usd,
    case when is_applicable then left_usd - right_usd end as difference_usd, tolerance_usd, status, part_count,
    differing_count as differing_part_count,
    case when identity = 4 and has_net_costs then convention end as discount_convention,
    -- Without 3 and 4 a bill is not what was invoiced, or a discount counts twice or not at all; without 1, once the
    -- month is over, a fee is lost. AWS rounds the hours of 2 and 6, 5 is 1 again, and discounts in line have no row.
    status = 'differs' and case identity when 1 then is_over when 3 then true when 4 then convention <> 'in line'
        else false end as is_blocking
from judged
