-- What a report line billed at its own rate costs where its cost is empty: machine time unknown, anything else nothing.
-- args: line
-- unit: the line's currency
-- Hours of a Capacity Block are free by design, and a line listed at 0 costs nothing.
case when not coalesce(line.list_rule = 'public' and line.line_class in ('instance', 'capacity_unused')
        and line.market <> 'capacity_block' and line.line_item_usage_amount > 0
        and line.pricing_public_on_demand_cost is distinct from 0, false)
    then 0 end
