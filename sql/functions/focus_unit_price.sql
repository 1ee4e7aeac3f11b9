-- The unit price of a cost: the rate the bill states where it gives just this cost, else the quotient.
-- args: cost, quantity, rate
-- unit: the line's currency
case
    when rate >= 0 and rate * quantity = cost then cast(rate as double)
    when quantity = 0 then 0
    else cast(cost as double) / cast(quantity as double)
end
