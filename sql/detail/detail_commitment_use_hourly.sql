-- One row per hour × payer × region × currency × family × instance type × eligibility × commitment: usage that
-- commitments can cover.
-- partition: billing_period
-- Each line is in one row, under the kind `none` where no commitment covered it, so rows add up. Where the export is
-- daily or monthly, a row is a day or a month. A commitment is shared by its payer's accounts within the hour;
-- detail_commitment_use_daily has the accounts.
with fee as (
    select distinct payer_account_id, billing_currency, commitment_discount_id, commitment_kind
    from stg_aws__commitment_fee
),

-- Read from the lines: fct_charge has no hours.
line as (
    select
        source_name, charge_kind_id, instance_type, date_trunc('hour', usage_started_at) as hour_started_at,
        case when effective_rule in ('savings_plan', 'reservation') then coalesce(commitment_discount_id, '') end
            as commitment_discount_id,
        count(*) - count(list_cost_usd) as unpriced_line_count,
        coalesce(sum(case when line_class in ('instance', 'capacity_unused', 'warm_pool') then usage_quantity end), 0)
            as instance_hours,
        sum(normalized_units) as normalized_units,
        coalesce(sum(list_cost_usd), 0) as list_cost_usd,
        known_sum(amortized_cost_usd) as amortized_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd
    from stg_aws__line_item
    where can_be_covered(commitment_eligibility)
    group by all
),

use as (
    select
        kind.billing_period, cast(line.hour_started_at as date) as usage_date,
        cast(line.hour_started_at as timestamp) as hour_started_at, kind.payer_account_id, kind.region_id,
        kind.billing_currency, commitment_family(kind.accelerator_family) as accelerator_family,
        coalesce(line.instance_type, kind.commitment_eligibility) as usage_type_key, kind.commitment_eligibility,
        coalesce(covering_kind(kind.effective_rule, fee.commitment_kind, kind.commitment_eligibility), 'none')
            as commitment_kind,
        coalesce(line.commitment_discount_id, '') as commitment_id,
        line.list_cost_usd, line.amortized_cost_usd, line.effective_cost_usd, line.instance_hours,
        line.normalized_units,
        line.unpriced_line_count
    from line
    join stg_aws__charge_kind as kind
        on kind.source_name = line.source_name and kind.charge_kind_id = line.charge_kind_id
    left join fee
        on fee.payer_account_id = kind.payer_account_id and fee.billing_currency = kind.billing_currency
        and fee.commitment_discount_id = line.commitment_discount_id
)

select
    billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, accelerator_family,
    usage_type_key, commitment_eligibility, commitment_kind, commitment_id,
    sum(list_cost_usd) as eligible_list_cost_usd,
    sum(case when commitment_kind <> 'none' then list_cost_usd else 0 end) as covered_list_cost_usd,
    known_sum(case when commitment_kind <> 'none' then amortized_cost_usd else 0 end) as used_cost_usd,
    known_sum(case when commitment_kind = 'none' then effective_cost_usd else 0 end) as on_demand_cost_usd,
    sum(instance_hours) as eligible_hours,
    sum(case when commitment_kind <> 'none' then instance_hours else 0 end) as covered_hours,
    sum(normalized_units) as eligible_normalized_units,
    cast(sum(unpriced_line_count) as bigint) as unpriced_line_count
from use
group by billing_period, usage_date, hour_started_at, payer_account_id, region_id, billing_currency, accelerator_family,
    usage_type_key, commitment_eligibility, commitment_kind, commitment_id
