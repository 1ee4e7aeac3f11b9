-- One row per billing month × currency with a bill: whether it is the newest and still open, so that it says nothing of a whole month.
-- stored: no
with newest as (
    select max(billing_month) as newest_month from fct_bill_total_monthly
)

select bill.billing_month, bill.billing_currency,
    max(case when bill.is_open and bill.billing_month = newest.newest_month then 1 else 0 end) = 1 as is_open_month
from fct_bill_total_monthly as bill
cross join newest
group by bill.billing_month, bill.billing_currency
