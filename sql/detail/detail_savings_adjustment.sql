-- One row per adjustment of a month's savings that is no routine: how much, why, and when it was decided.
select month_date, adjustment_no, baseline_name, billing_currency, amount_usd as adjustment_usd, adjustment_reason, decided_date
from declared_adjustment
