-- How the usage of a line was bought.
-- args: is_block_time, is_spot, effective_rule
case
    when is_block_time then 'capacity_block'
    when is_spot then 'spot'
    when effective_rule = 'savings_plan' then 'savings_plan'
    when effective_rule = 'reservation' then 'reserved'
    else 'on_demand'
end
