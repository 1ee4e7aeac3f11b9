"""Sums over what a page selects, for which no mart has a row: the only sums of pages. Queries of reports name them.

Each reads one mart; `{where}` is the page's own condition, `{basis}` a cost basis with its underscore.
"""

from pipelines.present.buckets import BUCKETS, TRAINING

# A chart shows no more days: they would be thinner than a line.
_DRAWN_DAYS = 92
_IS_TRAINING = f"bucket in ({', '.join(repr(bucket) for bucket in TRAINING)})"
_IS_DRAWN = f"usage_date > (select max(usage_date) from mart_cost_ledger_daily) - interval {_DRAWN_DAYS} day"

_DAY = """
    select usage_date, billing_currency as currency, bucket, sum(accelerator_hours) as accelerator_hours,
        known_sum(list_cost_usd) as list_cost_usd, sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd
    from mart_cost_ledger_daily
    where {where}
    group by usage_date, billing_currency, bucket
    order by currency, usage_date, list_position({buckets}, bucket), bucket
""".replace("{buckets}", str(list(BUCKETS)))
_HOUR = """
    select billing_currency as currency, usage_date, extract(hour from hour_started_at) as hour_no,
        sum(eligible_list_cost_usd) as eligible_usd,
        coverage_ratio(covered_list_cost_usd, eligible_list_cost_usd) as coverage_ratio
    from {mart}
    where {where}
    group by billing_currency, usage_date, extract(hour from hour_started_at)
    having sum(eligible_list_cost_usd) > 0
    order by currency, usage_date, hour_no
"""
_RUNS = """
    select billing_currency as currency, count(*) as run_count, known_sum({basis}cost_usd) as cost_usd,
        sum(wasted_cost_usd) as wasted_cost_usd
    from mart_run_cost
    where {where}
    group by billing_currency
    order by currency nulls last
"""
_SAVINGS = """
    select billing_currency as currency, count(*) as workload_count, sum(avoided_cost_usd) as avoided_usd,
        sum(cash_avoided_cost_usd) as cash_usd, sum(avoided_low_cost_usd) as low_usd,
        sum(avoided_high_cost_usd) as high_usd, sum(adjustment_count) as adjustment_count
    from mart_savings_monthly
    where is_headline and {where}
    group by billing_currency
    order by currency
"""
_NOT_DRAWN = f"""
    select *, case when all_usd > 0 then ratio(other_usd + earlier_usd, all_usd) end as share_ratio
    from (
        select
            billing_currency as currency,
            sum(effective_cost_usd) as all_usd,
            coalesce(sum(effective_cost_usd) filter (where not {_IS_TRAINING}), 0) as other_usd,
            coalesce(sum(effective_cost_usd) filter (where {_IS_TRAINING} and not is_drawn), 0) as earlier_usd
        from (select *, {_IS_DRAWN} as is_drawn from mart_cost_ledger_daily)
        group by billing_currency
    )
    order by currency
"""
SUMS = {
    "cost_by_day": _DAY,
    "cost_of_drawn_days": _DAY.replace("{where}", f"{_IS_TRAINING} and {_IS_DRAWN}"),
    "cost_not_drawn": _NOT_DRAWN,
    "use_coverage_by_hour": _HOUR.replace("{mart}", "detail_commitment_use_hourly"),
    "kind_coverage_by_hour": _HOUR.replace("{mart}", "detail_commitment_coverage_hourly"),
    "runs_by_currency": _RUNS,
    "savings_by_currency": _SAVINGS,
}
