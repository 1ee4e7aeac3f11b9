-- What a report line would cost at the public on-demand price; null where AWS gives none in the bill's currency.
-- args: list_rule, line_class, market, pricing_currency, billing_currency, public_cost
-- unit: the line's currency
case
    when list_rule = 'zero' or line_class = 'split_child' then 0
    when list_rule = 'none' or market = 'capacity_block' then null
    -- Whether the list cost is then in the currency of prices or of the bill, AWS does not document (facts 6, pitfall 18).
    when pricing_currency <> billing_currency then null
    when market = 'spot' then nullif(public_cost, 0)
    else public_cost
end
