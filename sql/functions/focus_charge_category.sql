-- What kind of charge FOCUS calls a bill line. Everything bought is a Purchase, whatever it is for; a discount on a
-- line of its own and money returned are an Adjustment, for the bill does not show what they belong to.
-- args: charge_type, effective_rule, line_class, effective_cost
case
    when charge_type = 'Tax' then 'Tax'
    when effective_rule = 'credit' then 'Credit'
    when effective_rule = 'discount' then 'Adjustment'
    when line_class = 'block_fee' or charge_type = 'SavingsPlanUpfrontFee' then 'Purchase'
    when effective_rule in ('fee', 'savings_plan_unused', 'reservation_unused') then 'Purchase'
    -- Money back for a commitment's upfront fee; its amortized cost is nothing, as the fee's is.
    when effective_rule = 'refund' and effective_cost = 0 then 'Purchase'
    when effective_rule in ('refund', 'zero') then 'Adjustment'
    else 'Usage'
end
