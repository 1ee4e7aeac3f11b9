-- What a report line billed at its own rate costs where its cost is empty: usage unknown, anything else nothing.
-- args: line
-- unit: the line's currency
-- Hours of a Capacity Block are free by design, a line listed at 0 costs nothing, and what marks reserved capacity or
-- splits a machine repeats what other lines cost.
case when not coalesce(line.list_rule = 'public'
        and line.line_class not in ('block_fee', 'capacity_marker', 'split_child')
        and line.market <> 'capacity_block' and line.line_item_usage_amount > 0
        and line.pricing_public_on_demand_cost is distinct from 0, false)
    then 0 end
