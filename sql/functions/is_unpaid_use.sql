-- Whether a piece is use of a Capacity Block that no delivered fee pays for; lines by the day or without a resource can
-- be of any block.
-- args: market, charge_category, piece_kind, bucket, accelerator_hours, paid_id
market = 'capacity_block' and charge_category = 'Usage' and paid_id is null
    and (piece_kind = 'instance_hour' or bucket = 'capacity_unused' or accelerator_hours is distinct from 0)
