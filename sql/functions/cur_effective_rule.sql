-- How a charge type counts in effective cost; an unclassified one counts as billed, and a name that ends in
-- Discount shows what it is (facts aws-billing 2.1).
-- args: known_rule, charge_type
coalesce(known_rule, case when charge_type like '%Discount' then 'discount' else 'as_billed' end)
