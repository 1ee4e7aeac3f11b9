-- How a bill line counts in effective cost, in words; null for a rule of no list.
-- Source: facts aws-billing 2.2, 2.3 and 3.5; credits: design 3.1.
-- args: effective_rule, line_class
case case when line_class = 'block_fee' then 'block_fee' else effective_rule end
    when 'as_billed' then 'as billed'
    when 'savings_plan' then 'the Savings Plan''s effective cost, not the on-demand cost the line shows'
    when 'savings_plan_unused' then 'the part of the Savings Plan''s commitment that nothing used'
    when 'reservation' then 'the reservation''s effective cost, its upfront and recurring part for this use'
    when 'reservation_unused' then 'the part of the reservation''s fees that nothing used'
    when 'block_fee' then 'as billed, spread over the hours of the Capacity Block'
    when 'zero' then 'nothing: other lines carry this cost'
    when 'upfront_fee' then 'nothing: the use the fee pays for carries it'
    when 'credit' then 'nothing, for effective cost is before credits'
    when 'discount' then 'as billed, or nothing where net values hold the discount already'
    when 'fee' then 'as billed, or nothing where it buys a reservation whose use carries it'
    when 'refund' then 'as billed, or nothing where it gives back a Savings Plan''s one-time fee that was never counted'
end
