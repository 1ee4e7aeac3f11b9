-- What a charge of our FOCUS export costs before discounts that are no line of their own, upfront fees spread: of a
-- commitment's fee on what is accrued of it, of another fee on what was paid.
-- args: half, commitment_id, amortized_cost
-- unit: the line's currency
cast(case when half = case when commitment_id is null then 'accrued' else 'paid' end then 0 else amortized_cost end
    as decimal(20, 10))
