-- The first day of the month that a line's billing period begins in (in FOCUS on any day); where the line
-- lacks it, the month it was delivered for.
-- args: period_started_at, billing_period
cast(date_trunc('month', coalesce(period_started_at, cast(billing_period || '-01' as timestamp))) as date)
