-- One row per instance type, region and day on which the bill tells a public price: the book's price for that day.
-- stored: no
with told as (
    select instance_type, region_id, usage_date, billing_currency, min(price_per_hour_usd) as price_per_hour_usd,
        max(highest_price_per_hour_usd) as highest_price_per_hour_usd, sum(instance_hours) as instance_hours
    from fct_list_price_daily
    group by instance_type, region_id, usage_date, billing_currency
),

book as (
    select instance_type, region_id, from_date, price_per_hour_usd
    from ref_list_price
    where offer = 'on_demand'
),

dated as (
    select told.instance_type, told.region_id, told.usage_date, max(book.from_date) as from_date
    from told
    join book on book.instance_type = told.instance_type and book.region_id = told.region_id and book.from_date <= told.usage_date
    group by told.instance_type, told.region_id, told.usage_date
)

select
    told.instance_type, told.region_id, told.usage_date, told.billing_currency, told.price_per_hour_usd, told.highest_price_per_hour_usd, told.instance_hours,
    book.price_per_hour_usd as book_price_per_hour_usd,
    case
        when book.price_per_hour_usd is null then 'not in the book'
        -- A hundredth of a percent is more than amounts are rounded by.
        when abs(told.price_per_hour_usd - book.price_per_hour_usd) * 10000 > book.price_per_hour_usd then 'differs'
        else 'agrees'
    end as price_status
from told
left join dated on dated.instance_type = told.instance_type and dated.region_id = told.region_id and dated.usage_date = told.usage_date
left join book on book.instance_type = dated.instance_type and book.region_id = dated.region_id and book.from_date = dated.from_date
