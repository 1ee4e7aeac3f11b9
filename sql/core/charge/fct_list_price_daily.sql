-- One row per instance type, region and day on which the bill tells a public on-demand price: what an hour cost by it.
-- partition: billing_period
with line as (
    select
        billing_period, usage_date, instance_type, region_id, billing_currency, usage_quantity, list_cost_usd,
        ratio(list_cost_usd, usage_quantity) as line_price_usd
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
        ratio(sum(list_cost_usd), sum(usage_quantity)) as price_usd,
        sum(usage_quantity) as usage_quantity
    from line
    where line_price_usd > 0
    group by billing_period, usage_date, instance_type, region_id, billing_currency, round(line_price_usd, 3)
)

-- Licensed systems and dedicated tenancy cost more, so the lowest price is that of Linux on shared machines.
select
    billing_period, usage_date, instance_type, region_id, billing_currency,
    min(price_usd) as price_per_hour_usd,
    max(price_usd) as highest_price_per_hour_usd,
    cast(sum(usage_quantity) as decimal(20, 6)) as instance_hours
from price
group by billing_period, usage_date, instance_type, region_id, billing_currency
