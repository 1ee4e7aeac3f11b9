-- One row per price change of what we use, team and workload: what it changed of our own cost so far, and what it changes at the hours
-- of the last 30 days.
with newest as (
    select max(usage_date) as usage_date
    from fct_ledger
    where piece_kind <> 'block_hour' and charge_category = 'Usage'
),

held as (
    select block_id, hours_of_ms(max(whole_units)) as instance_hours
    from fct_capacity_block_use_hourly
    group by block_id
),

-- A block keeps the price of the day it was bought.
block as (
    select fee.source_name, fee.source_file, fee.source_row, cast(min(fee.usage_started_at) over of_block as date) as bought_date,
        ratio(sum(fee.effective_cost_usd) over of_block, held.instance_hours) as paid_per_hour_usd
    from fct_capacity_block_fee as fee
    join held on held.block_id = fee.block_id
    window of_block as (partition by fee.billing_currency, fee.block_id)
),

used as (
    select
        ledger.billing_currency, ledger.instance_type, ledger.region_id, 'on_demand' as offer, ledger.usage_date as priced_date,
        ledger.usage_date, ledger.team, run.workload_id,
        ratio(ledger.accelerator_hours, machine.accelerator_count) as instance_hours
    from fct_ledger as ledger
    join ref_instance_type as machine on machine.instance_type = replace(ledger.instance_type, 'ml.', '')
    left join dim_run as run on run.run_id = ledger.run_id
    where ledger.market in ('on_demand', 'savings_plan', 'reserved') and ledger.charge_category = 'Usage'
        and ledger.accelerator_hours <> 0

    union all

    select
        ledger.billing_currency, ledger.instance_type, ledger.region_id, 'capacity_block', block.bought_date, ledger.usage_date,
        ledger.team, run.workload_id, ratio(ledger.effective_cost_usd, block.paid_per_hour_usd)
    from fct_ledger as ledger
    join block using (source_name, source_file, source_row)
    left join dim_run as run on run.run_id = ledger.run_id
    where ledger.piece_kind = 'block_hour'
),

-- Of prices from the same day, the one that names the region comes first, then the one that names its area.
offered as (
    select
        own.instance_type, own.region_id, own.offer, book.from_date, book.price_per_hour_usd, book.is_from_date_exact, book.source,
        row_number() over (partition by own.instance_type, own.region_id, own.offer, book.from_date
            order by case book.region_id when own.region_id then 0 when 'unstated' then 2 else 1 end) as choice_no
    from (select distinct instance_type, region_id, offer from used where billing_currency = 'USD') as own
    join mart_price_book as book
        on book.instance_type = own.instance_type and book.offer = own.offer and book.billing_currency = 'USD'
        and book.region_id in (own.region_id, price_area(own.region_id), 'unstated')
),

price as (
    select *,
        lag(price_per_hour_usd) over (partition by instance_type, region_id, offer order by from_date) as price_before_per_hour_usd
    from offered
    where choice_no = 1
),

summed as (
    select
        used.billing_currency, price.offer, price.instance_type, price.region_id, price.from_date, used.team, used.workload_id,
        max(case when price.from_date > newest.usage_date then 'announced' else 'past' end) as change_status,
        max(price.is_from_date_exact) as is_from_date_exact,
        max(price.price_before_per_hour_usd) as price_before_per_hour_usd,
        max(price.price_per_hour_usd) as price_per_hour_usd,
        max(price.source) as source,
        cast(sum(case when used.priced_date >= price.from_date then used.instance_hours else 0 end)
            as decimal(20, 6)) as instance_hours,
        cast(sum(case when used.usage_date > newest.usage_date - interval 30 day and used.usage_date <= newest.usage_date
            then used.instance_hours else 0 end) as decimal(20, 6)) as recent_instance_hours
    from price
    join used on used.offer = price.offer and used.instance_type = price.instance_type and used.region_id = price.region_id
    cross join newest
    -- A hundredth of a percent is more than amounts are rounded by.
    where used.billing_currency = 'USD'
        and abs(price.price_per_hour_usd - price.price_before_per_hour_usd) * 10000 > price.price_before_per_hour_usd
    group by used.billing_currency, price.offer, price.instance_type, price.region_id, price.from_date, used.team, used.workload_id
)

select
    billing_currency, offer, instance_type, region_id, from_date, change_status, is_from_date_exact, price_before_per_hour_usd,
    price_per_hour_usd, team, workload_id, instance_hours,
    cast((price_per_hour_usd - price_before_per_hour_usd) * instance_hours as decimal(20, 10)) as price_change_cost_usd,
    recent_instance_hours,
    cast((price_per_hour_usd - price_before_per_hour_usd) * recent_instance_hours as decimal(20, 10)) as recent_price_change_cost_usd,
    source
from summed
where instance_hours <> 0 or recent_instance_hours <> 0
