-- The first day of the month that a line is billed in; where the line lacks the start of its period, the month it was
-- delivered for.
-- args: period_started_at, billing_period
cast(coalesce(period_started_at, cast(billing_period || '-01' as timestamp)) as date)
