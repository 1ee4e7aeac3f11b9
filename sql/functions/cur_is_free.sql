-- Whether a report line costs nothing and lists at nothing.
-- over: aws_cur_line_item
coalesce(line_item_unblended_cost = 0 and coalesce(pricing_public_on_demand_cost, 0) = 0, false)
