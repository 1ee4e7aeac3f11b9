-- One row per adjustment of a month's savings that is no routine: of which workload, how much, why, and when it was decided.
-- It belongs to the newest version of its baseline.
with newest as (
    select baseline_name, max(baseline_version) as baseline_version, max_by(workload_id, baseline_version) as workload_id
    from declared_baseline
    group by baseline_name
)

select
    newest.workload_id, adjustment.month_date, adjustment.adjustment_no, adjustment.baseline_name, newest.baseline_version,
    adjustment.billing_currency, adjustment.amount_usd as adjustment_usd, adjustment.adjustment_reason, adjustment.decided_date
from declared_adjustment as adjustment
join newest on newest.baseline_name = adjustment.baseline_name
