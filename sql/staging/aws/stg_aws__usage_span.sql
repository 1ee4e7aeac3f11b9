-- One row per span of time of which a month's bill has usage: the month, and what lies before it of usage billed late.
-- partition: billing_period
-- stored: no
-- A file without a manifest may have lines of months to come, too: then the month lasts until their end.
select month.billing_period, month.started_at, greatest(month.ended_at, max(used.ended_at)) as ended_at, false as is_late
from this_month as month
left join stg_aws__billed_stretch as used on used.ended_at > month.ended_at
group by month.billing_period, month.started_at, month.ended_at

union all

select month.billing_period, min(used.started_at), month.started_at, true
from this_month as month
join stg_aws__billed_stretch as used on used.started_at < month.started_at
group by month.billing_period, month.started_at
