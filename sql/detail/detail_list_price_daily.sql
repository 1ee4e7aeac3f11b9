-- One row per instance type, region and day whose public on-demand price is on the bill: what an hour cost by it, and by the price book.
-- partition: billing_period
with line as (
    select
        billing_period, usage_date, instance_type, region_id, billing_currency, usage_quantity, list_cost_usd,
        usd_per(list_cost_usd, usage_quantity) as line_price_usd
    from fct_charge
    where line_class = 'instance' and accelerator_family <> 'none' and instance_type is not null
        -- Of Spot and blocks the bill states no public price to rely on; the book is in dollars.
        and market in ('on_demand', 'savings_plan', 'reserved') and billing_currency = 'USD'
        and list_cost_usd > 0 and usage_quantity > 0
),

-- Amounts are rounded, so an hour's price differs from line to line far behind the point: taken together it does not.
price as (
    select
        billing_period, usage_date, instance_type, region_id, billing_currency,
        usd_per(sum(list_cost_usd), sum(usage_quantity)) as price_usd,
        sum(usage_quantity) as usage_quantity
    from line
    where line_price_usd > 0
    group by billing_period, usage_date, instance_type, region_id, billing_currency, round(line_price_usd, 3)
),

-- The book's price holds from its date on.
book as (
    select instance_type, region_id, from_date, price_per_hour_usd,
        lead(from_date, 1, date '9999-12-31') over (partition by instance_type, region_id order by from_date) as until_date
    from ref_list_price
    where offer = 'on_demand'
),

-- The price of most hours, the lower of two: licensed systems and dedicated tenancy cost more.
ranked as (
    select *, first_value(price_usd) over (partition by billing_period, usage_date, instance_type, region_id, billing_currency
        order by usage_quantity desc, price_usd rows between unbounded preceding and unbounded following) as modal_price_usd
    from price
),

day as (
    select
        price.billing_period, price.usage_date, price.instance_type, price.region_id, price.billing_currency,
        max(price.modal_price_usd) as price_per_hour_usd,
        max(price.price_usd) as highest_price_per_hour_usd,
        max(book.price_per_hour_usd) as book_price_per_hour_usd,
        cast(sum(price.usage_quantity) as decimal(20, 6)) as instance_hours,
        -- Less than a hundredth of a percent is how amounts are rounded.
        cast(sum(case when abs(price_usd - modal_price_usd) * 10000 > modal_price_usd
            then price_usd * usage_quantity else 0 end) as decimal(20, 10)) as other_price_list_cost_usd
    from ranked as price
    left join book
        on book.instance_type = price.instance_type and book.region_id = price.region_id
        and book.from_date <= price.usage_date and book.until_date > price.usage_date
    group by price.billing_period, price.usage_date, price.instance_type, price.region_id, price.billing_currency
)

select
    billing_period, usage_date, instance_type, region_id, billing_currency, price_per_hour_usd, highest_price_per_hour_usd,
    book_price_per_hour_usd, instance_hours, other_price_list_cost_usd,
    case
        when book_price_per_hour_usd is null then 'not in the book'
        -- A hundredth of a percent is more than amounts are rounded by.
        when abs(price_per_hour_usd - book_price_per_hour_usd) * 10000 > book_price_per_hour_usd then 'differs'
        else 'agrees'
    end as price_status,
    cast((price_per_hour_usd - book_price_per_hour_usd) * instance_hours as decimal(20, 10)) as price_difference_usd
from day
