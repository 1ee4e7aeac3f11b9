-- One row per instance type × region × public price on the bill × how it compares with the price book of that day.
with daily as (
    select instance_type, region_id, usage_date, billing_currency, max_by(price_per_hour_usd, instance_hours) as price_per_hour_usd,
        max(highest_price_per_hour_usd) as highest_price_per_hour_usd, max(book_price_per_hour_usd) as book_price_per_hour_usd,
        sum(instance_hours) as instance_hours
    from fct_list_price_daily
    group by instance_type, region_id, usage_date, billing_currency
),

compared as (
    select *,
        case
            when book_price_per_hour_usd is null then 'not in the book'
            -- A hundredth of a percent is more than amounts are rounded by.
            when abs(price_per_hour_usd - book_price_per_hour_usd) * 10000 > book_price_per_hour_usd then 'differs'
            else 'agrees'
        end as price_status
    from daily
)

select
    instance_type, region_id, billing_currency, price_per_hour_usd, book_price_per_hour_usd, price_status,
    min(usage_date) as first_date,
    max(usage_date) as last_date,
    count(*) as day_count,
    max(highest_price_per_hour_usd) as highest_price_per_hour_usd,
    sum(instance_hours) as instance_hours,
    cast(sum((price_per_hour_usd - book_price_per_hour_usd) * instance_hours) as decimal(20, 10)) as price_difference_usd
from compared
group by instance_type, region_id, billing_currency, price_per_hour_usd, book_price_per_hour_usd, price_status
