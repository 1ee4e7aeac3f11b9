-- How the usage of a FOCUS line was bought.
-- over: the ruled lines of stg_aws__focus_line_item
case
    when operation like '%:CB' then 'capacity_block'
    when pricing_category = 'Dynamic' or usage_kind in ('SpotUsage', 'TrSpt') then 'spot'
    when effective_rule = 'savings_plan' then 'savings_plan'
    when effective_rule = 'reservation' then 'reserved'
    else 'on_demand'
end
