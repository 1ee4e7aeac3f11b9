-- One row per price of an instance-hour and the day it holds from, by instance type, region and offer: what `reprice` reads.
-- The reviewed book, refreshed by the list prices of the bill.
with daily as (
    select instance_type, region_id, usage_date, billing_currency, max(book_price_per_hour_usd) as book_usd,
        max_by(price_per_hour_usd, instance_hours) as price_per_hour_usd
    from detail_list_price_daily
    group by instance_type, region_id, usage_date, billing_currency
),

lowest as (
    select *,
        min(price_per_hour_usd) over (partition by instance_type, region_id order by usage_date
            rows between unbounded preceding and current row) as until_then_usd,
        min(price_per_hour_usd) over (partition by instance_type, region_id order by usage_date
            rows between current row and unbounded following) as from_then_usd
    from daily
),

followed as (
    select
        instance_type, region_id, usage_date, billing_currency, price_per_hour_usd,
        lag(price_per_hour_usd) over (partition by instance_type, region_id order by usage_date) as price_before_usd,
        lag(usage_date) over (partition by instance_type, region_id order by usage_date) as date_before
    from lowest
    -- A price above one that holds before it, and after it or by the book, is of a day on which only licensed or dedicated
    -- machines ran.
    where price_per_hour_usd * 10000 <= until_then_usd * 10001
        or least(abs(until_then_usd - from_then_usd), coalesce(abs(until_then_usd - book_usd), until_then_usd)) * 10000 > until_then_usd
),

-- A price that stays the same has one row, from its first day.
billed as (
    select instance_type, region_id, usage_date as from_date, billing_currency, price_per_hour_usd
    from followed
    where price_before_usd is null or abs(price_per_hour_usd - price_before_usd) * 10000 > price_before_usd
),

book as (
    select *, offer = 'on_demand' as is_on_demand from ref_list_price
),

-- The bill shows one price before and after the book's date, and it is not the book's: the date is wrong.
contradicted as (
    select distinct book.instance_type, book.region_id, book.from_date
    from book
    join followed as seen on seen.instance_type = book.instance_type and seen.region_id = book.region_id
        and seen.date_before < book.from_date and seen.usage_date >= book.from_date
    where book.is_on_demand and abs(seen.price_per_hour_usd - seen.price_before_usd) * 10000 <= seen.price_before_usd
        and abs(seen.price_per_hour_usd - book.price_per_hour_usd) * 10000 > book.price_per_hour_usd
),

price as (
    select instance_type, region_id, 'on_demand' as offer, from_date, billing_currency, price_per_hour_usd, 'bill' as price_evidence,
        false as is_from_date_exact, 'public on-demand price of our own bill' as source, cast(from_date as varchar) as as_of
    from billed

    union all

    -- What the bill shows of the same day is newer than the book, which is AWS's list in dollars.
    select book.instance_type, book.region_id, book.offer, book.from_date, 'USD', book.price_per_hour_usd, 'book',
        book.is_from_date_exact, book.source, book.as_of
    from book
    left join billed
        on billed.instance_type = book.instance_type and billed.region_id = book.region_id and billed.from_date = book.from_date
    left join contradicted on contradicted.instance_type = book.instance_type
        and contradicted.region_id = book.region_id and contradicted.from_date = book.from_date
    where (billed.from_date is null and contradicted.from_date is null) or not book.is_on_demand
)

select
    price.instance_type, machine.accelerator_family, machine.accelerator_name, machine.accelerator_count, price.region_id, price.offer,
    price.from_date, price.billing_currency, price.price_per_hour_usd, price.price_evidence, price.is_from_date_exact, price.source, price.as_of
from price
left join ref_instance_type as machine on machine.instance_type = replace(price.instance_type, 'ml.', '')
