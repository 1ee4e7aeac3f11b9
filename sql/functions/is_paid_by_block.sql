-- Whether a use is of a resource and a day that the fee of a Capacity Block pays for.
-- args: paid, used
paid.usage_date = used.usage_date and paid.paid_id = case when used.market = 'capacity_block'
    then coalesce(capacity_reservation_id(used.resource_id), used.resource_id) end
