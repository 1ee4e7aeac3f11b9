-- One row per hour and set of attributes of the usage that commitments cover or could cover, with what covered it.
-- partition: billing_period
-- A day or month where the export is daily or monthly. A commitment is shared by its payer's accounts hour by hour, so an hour is told for
-- all of them; what each of them used is told by the day (detail_commitment_use_daily). From the lines: `fct_charge` knows no hours.
with use as (
    select
        charge_kind_id, instance_type, date_trunc('hour', usage_started_at) as hour_started_at,
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
    kind.billing_period, kind.billing_month, cast(use.hour_started_at as date) as usage_date,
    cast(use.hour_started_at as timestamp) as hour_started_at, kind.payer_account_id, kind.region_id, kind.billing_currency,
    commitment_family(kind.accelerator_family) as accelerator_family, use.instance_type,
    kind.commitment_eligibility, use.commitment_discount_id,
    covering_kind(kind.effective_rule, told.commitment_kind, kind.commitment_eligibility) as covering_kind,
    use.line_count, use.unpriced_line_count, use.instance_hours, use.normalized_units,
    use.list_cost_usd, use.amortised_cost_usd, use.effective_cost_usd
from use
join stg_aws__charge_kind as kind on kind.charge_kind_id = use.charge_kind_id
left join fct_commitment_kind as told
    on told.payer_account_id = kind.payer_account_id and told.billing_currency = kind.billing_currency
    and told.commitment_discount_id = use.commitment_discount_id
