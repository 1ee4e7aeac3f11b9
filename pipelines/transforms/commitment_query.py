"""What a recommendation of a commitment reads: hours of all types and commitments are many, so they are summed up."""

QUERIES = {
    # On-demand usage by hour, and covered usage of each payer's last 28 days, whose prices are its own (`is_rated`).
    # What a commitment covered that covers nothing on the newest day has its hours too: that commitment may have ended.
    # An hour with a line of unknown list price has no ratio, neither of a plan nor of on-demand cost. Other services,
    # such as databases, have no offer. `first_hour_at` and `last_hour_at` are those of any such usage.
    "detail_commitment_use_hourly": """
        with use as (
            select
                *, commitment_kind = 'none' as is_open, max(usage_date) over payer as newest_date,
                min(hour_started_at) over payer as first_hour_at, max(hour_started_at) over payer as last_hour_at,
                max(usage_date) over (partition by payer_account_id, billing_currency, commitment_id) as last_date
            from detail_commitment_use_hourly
            window payer as (partition by payer_account_id, billing_currency)
        )

        select
            payer_account_id, billing_currency, first_hour_at, last_hour_at, region_id, usage_type_key,
            commitment_eligibility, commitment_kind, commitment_id,
            case when is_open or last_date < newest_date then hour_started_at end as hour_started_at,
            coalesce(not is_open and used_cost_usd > 0 and unpriced_line_count = 0
                and usage_date > newest_date - interval '28' day, false) as is_rated,
            sum(eligible_list_cost_usd) as list_cost_usd, sum(used_cost_usd) as used_cost_usd,
            case when sum(unpriced_line_count) = 0 and count(case when is_open then on_demand_cost_usd end) = count(*)
                then sum(on_demand_cost_usd) end as on_demand_cost_usd
        from use
        where eligible_list_cost_usd > 0 and commitment_eligibility <> 'covered_service'
            and (is_open or last_date < newest_date or usage_date > newest_date - interval '28' day)
        group by all
    """,
    # The newest month in which a payer's bill has accelerator time by the day or month.
    "fct_charge": """
        select payer_account_id, billing_currency, max(billing_month) as daily_month
        from fct_charge
        where missing_hours = 'billed by the day or month'
        group by payer_account_id, billing_currency
    """,
    "fct_invoice_monthly": """
        select payer_account_id, billing_currency, max(newest_usage_at) as newest_usage_at
        from fct_invoice_monthly
        group by payer_account_id, billing_currency
    """,
}
