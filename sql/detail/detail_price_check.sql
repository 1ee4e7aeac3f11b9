-- One row per instance type × region × public price the bill tells × what the book says of it: do bill and book agree?
select
    instance_type, region_id, billing_currency, price_per_hour_usd, book_price_per_hour_usd, price_status,
    min(usage_date) as first_date,
    max(usage_date) as last_date,
    count(*) as day_count,
    max(highest_price_per_hour_usd) as highest_price_per_hour_usd,
    sum(instance_hours) as instance_hours,
    cast(sum((price_per_hour_usd - book_price_per_hour_usd) * instance_hours) as decimal(20, 10)) as price_difference_usd
from fct_book_price_daily
group by instance_type, region_id, billing_currency, price_per_hour_usd, book_price_per_hour_usd, price_status
