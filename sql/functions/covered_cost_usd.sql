-- The cost of a line; null where a commitment covered its usage and the bill has no cost of it: unknown, not free.
-- args: cost, amortized_cost, effective_rule, usage_quantity
-- unit: the line's currency
case when not (effective_rule in ('savings_plan', 'reservation') and coalesce(amortized_cost, 0) = 0
        and coalesce(usage_quantity, 0) > 0)
    then cost end
