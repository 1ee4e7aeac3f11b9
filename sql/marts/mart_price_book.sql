-- One row per price of an instance-hour and the day it holds from, by instance type, region and offer: what `reprice` reads.
select
    instance_type, accelerator_family, accelerator_name, accelerator_count, region_id, offer, from_date, billing_currency, price_per_hour_usd,
    price_evidence, is_from_date_exact, source, as_of
from dim_list_price
