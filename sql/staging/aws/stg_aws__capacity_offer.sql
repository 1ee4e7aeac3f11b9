-- One row per offer of capacity, declared or as AWS answered: its price, its wait and, of Spot, its placement score.
select
    instance_type, accelerator_family, region_id, purchase_option, lead_days, price_per_hour_usd, block_hours,
    cast(null as bigint) as placement_score, 'USD' as currency
from declared_offer

union all

select
    offer.instance_type, machine.accelerator_family, offer.region_id, offer.purchase_option,
    case when offer.started_at is not null
        then greatest(date_diff('day', offer.recorded_date, cast(offer.started_at as date)), 0) end as lead_days,
    case when offer.currency = 'USD' then cast(offer.upfront_fee * 3600
        / (offer.instance_count * date_diff('second', offer.started_at, offer.ended_at)) as decimal(20, 10)) end
        as price_per_hour_usd,
    cast(floor(date_diff('second', offer.started_at, offer.ended_at) / 3600.0) as bigint) as block_hours,
    offer.placement_score, offer.currency
from aws_capacity_offer as offer
left join ref_instance_type as machine on machine.instance_type = replace(offer.instance_type, 'ml.', '')
