-- The cost of a line; null where a commitment covered its hours and the bill has no cost of them.
-- args: cost, effective_rule, instance_hours
-- unit: usd
case when not (effective_rule in ('savings_plan', 'reservation') and cost = 0 and coalesce(instance_hours, 0) > 0)
    then cost end
