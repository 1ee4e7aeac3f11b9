-- What a report line adds to the invoice.
-- args: is_negation_complete, line_item_type, cost
-- unit: the line's currency
-- Under a Savings Plan the covered line shows the on-demand cost and its negation names no resource;
-- where the two cancel both are billed at nothing, as FOCUS bills them.
case
    when is_negation_complete and line_item_type in ('SavingsPlanCoveredUsage', 'SavingsPlanNegation') then 0
    else coalesce(cost, 0)
end
