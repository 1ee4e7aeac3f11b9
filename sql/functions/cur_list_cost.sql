-- What a report line would cost at the public on-demand price; null where AWS gives none in the bill's currency.
-- over: the classified lines of stg_aws__line_item
-- unit: the line's currency
case
    when list_rule = 'zero' or line_class = 'split_child' then 0
    when list_rule = 'none' or is_block_time then null
    -- Whether the list cost is then in the currency of prices or of the bill, AWS does not say (facts 6, pitfall 18).
    when pricing_currency <> line_item_currency_code then null
    when pricing_term = 'Spot' or usage_kind in ('SpotUsage', 'TrSpt') then nullif(pricing_public_on_demand_cost, 0)
    else pricing_public_on_demand_cost
end
