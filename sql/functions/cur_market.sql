-- How the usage of a report line was bought.
-- over: the classified combinations of stg_aws__cur_line_kind
case
    when is_block_time then 'capacity_block'
    when pricing_term = 'Spot' or usage_kind in ('SpotUsage', 'TrSpt') then 'spot'
    when effective_rule = 'savings_plan' then 'savings_plan'
    when effective_rule = 'reservation' then 'reserved'
    else 'on_demand'
end
