-- What a FOCUS line would cost at the public on-demand price; null where AWS gives none.
-- args: effective_rule, line_class, is_usage, market, pricing_category, list_cost
-- unit: the line's currency
-- ListCost stands on a commitment's purchase and again on the usage it covers, so only usage counts (facts aws-billing
-- 1.4).
case
    when effective_rule in ('upfront_fee', 'savings_plan_unused', 'reservation_unused') then 0
    when not is_usage or line_class = 'block_fee' or market = 'capacity_block' then null
    when pricing_category = 'Dynamic' then nullif(list_cost, 0)
    else list_cost
end
