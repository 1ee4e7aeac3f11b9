-- Whether a rule is about a Savings Plan or a reservation at work: what it covers, what that offsets, what its fee
-- leaves unused.
-- args: effective_rule
effective_rule in ('savings_plan', 'savings_plan_unused', 'reservation', 'reservation_unused', 'zero')
