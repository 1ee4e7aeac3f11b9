-- One row per Savings Plan or reservation as files or AWS report it; without its kind where it cannot be read.
select
    commitment_discount_id, commitment_key(commitment_discount_id) as commitment_key, commitment_kind,
    region_id, instance_family, payment_option, purchase_term, started_at, ended_at,
    cast(commitment_per_hour as decimal(38, 10)) as commitment_per_hour_usd, currency, state
from aws_commitment
