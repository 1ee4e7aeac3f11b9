-- One row per hour and set of attributes of the usage that commitments cover or could cover, with what covered it.
-- partition: billing_period
-- A day or month where the export is daily or monthly. A commitment is shared by its payer's accounts hour by hour, so an hour is told for
-- all of them; what each of them used is told by the day (mart_commitment_use_daily).
select
    use.billing_period, kind.billing_month, cast(use.hour_started_at as date) as usage_date,
    use.hour_started_at, kind.payer_account_id, kind.region_id, kind.billing_currency,
    commitment_family(kind.accelerator_family) as accelerator_family, use.covered_instance_type as instance_type,
    kind.commitment_eligibility, use.covering_discount_id as commitment_discount_id,
    covering_kind(kind.effective_rule, told.commitment_kind, kind.commitment_eligibility) as covering_kind,
    use.line_count, use.unpriced_line_count, use.instance_hours, use.normalized_units,
    use.list_cost_usd, use.amortised_cost_usd, use.effective_cost_usd
from fct_line_sum as use
join stg_aws__charge_kind as kind on kind.billing_period = use.billing_period and kind.charge_kind_no = use.covered_kind_no
left join fct_commitment_kind as told
    on told.payer_account_id = kind.payer_account_id and told.billing_currency = kind.billing_currency
    and told.commitment_discount_id = use.covering_discount_id
