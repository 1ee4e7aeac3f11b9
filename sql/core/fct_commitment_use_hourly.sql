-- One row per hour and set of attributes of the usage that commitments cover or could cover, with what covered it.
-- partition: billing_period
-- A day or month where the export is daily or monthly. A commitment is shared by its payer's accounts hour by hour, so an hour is told for
-- all of them; what each of them used is told by the day (mart_commitment_use_daily). From the lines: `fct_charge` knows no hours.
with use as (
    select
        billing_period, billing_month, usage_date, date_trunc('hour', usage_started_at) as hour_started_at, payer_account_id, region_id,
        billing_currency, commitment_family(accelerator_family) as accelerator_family, instance_type, commitment_eligibility,
        case when effective_rule in ('savings_plan', 'reservation') then effective_rule end as covered_by,
        case when effective_rule in ('savings_plan', 'reservation') then coalesce(commitment_discount_id, '') end as commitment_discount_id,
        cast(count(*) as bigint) as line_count,
        cast(count(*) - count(list_cost_usd) as bigint) as unpriced_line_count,
        sum(case when line_class in ('instance', 'capacity_unused', 'warm_pool') then usage_quantity end) as instance_hours,
        sum(normalized_units) as normalized_units,
        sum(list_cost_usd) as list_cost_usd,
        sum(amortised_cost_usd) as amortised_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd
    from stg_aws__line_item
    where can_be_covered(commitment_eligibility)
    group by all
)

select
    use.billing_period, use.billing_month, use.usage_date, cast(use.hour_started_at as timestamp) as hour_started_at,
    use.payer_account_id, use.region_id, use.billing_currency, use.accelerator_family, use.instance_type,
    use.commitment_eligibility, use.commitment_discount_id,
    covering_kind(use.covered_by, told.commitment_kind, use.commitment_eligibility) as covering_kind,
    use.line_count, use.unpriced_line_count, use.instance_hours, use.normalized_units,
    use.list_cost_usd, use.amortised_cost_usd, use.effective_cost_usd
from use
left join fct_commitment_kind as told
    on told.payer_account_id = use.payer_account_id and told.billing_currency = use.billing_currency
    and told.commitment_discount_id = use.commitment_discount_id
