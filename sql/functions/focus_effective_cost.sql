-- What a FOCUS line costs amortized and after discounts, before credits (docs/decisions/0006).
-- args: effective_rule, line_class, market, description, is_accrued, billed_cost, effective_cost
-- unit: the line's currency
-- A Capacity Block's fee is its whole cost: amortized like a reservation's it would vanish (facts aws-billing 3.5). Its
-- hours cost their license; an export that amortizes the fee onto them would have it twice (standards-2026 4, shape A).
-- Our own export accrues the fee, after discounts, on a line next to the purchase.
case
    when effective_rule = 'credit' or is_plan_fee_refund(effective_rule, description) then 0
    when (line_class = 'block_fee' or market = 'capacity_block') and not is_accrued then coalesce(billed_cost, 0)
    else coalesce(effective_cost, 0)
end
