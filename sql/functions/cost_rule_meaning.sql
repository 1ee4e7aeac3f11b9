-- How a bill line counts in effective cost, in words; null for a rule of no list.
-- Source: facts aws-billing 2.2, 2.3 and 3.5; credits: design 3.1.
-- args: effective_rule, line_class
case case when line_class = 'block_fee' then 'block_fee' else effective_rule end
    when 'as_billed' then 'as billed'
    when 'savings_plan' then 'the Savings Plan''s effective cost, not the on-demand cost the line shows'
    when 'savings_plan_unused' then 'the unused part of the Savings Plan''s commitment'
    when 'reservation' then 'the reservation''s effective cost: its upfront and recurring part for this usage'
    when 'reservation_unused' then 'the unused part of the reservation''s fees'
    when 'block_fee' then 'as billed, spread over the hours of the Capacity Block'
    when 'zero' then 'excluded: other lines include this cost'
    when 'upfront_fee' then 'excluded: the usage that the fee pays for includes it'
    when 'credit' then 'excluded: effective cost is before credits'
    when 'discount' then 'as billed, or excluded if net amounts already include the discount'
    when 'fee' then 'as billed, or excluded if the reservation''s usage includes it'
    when 'refund' then 'as billed, or excluded if it refunds a Savings Plan''s excluded upfront fee'
end
