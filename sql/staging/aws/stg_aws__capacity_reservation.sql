-- One row per reservation of capacity, or part of one with a window of its own, as files or AWS report it.
select
    reservation_id, part_no, reservation_kind, account_id, region_id, instance_type,
    nullif(instance_count, 0) as instance_count, started_at, ended_at, upfront_fee
from aws_capacity_reservation
