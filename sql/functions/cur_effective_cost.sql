-- What a report line costs amortized and after discounts, before credits (facts aws-billing 2.3, design 3.1).
-- A discount row is inside the net values already, where there are any.
-- over: the classified lines of stg_aws__line_item with their amortized cost
-- unit: the line's currency
case
    when effective_rule = 'credit' or (effective_rule = 'discount' and has_net_costs) then 0
    when has_net_costs then cur_amortized_cost(true)
    else amortized_cost
end
