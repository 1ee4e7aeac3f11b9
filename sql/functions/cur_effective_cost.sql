-- What a report line costs amortized and after discounts, before credits (facts aws-billing 2.3, design 3.1).
-- args: effective_rule, has_net_costs, amortized_cost, net_amortized_cost
-- unit: the line's currency
-- A discount row is inside the net values already, where there are any.
case
    when effective_rule = 'credit' or (effective_rule = 'discount' and has_net_costs) then 0
    when has_net_costs then net_amortized_cost
    else amortized_cost
end
