-- What a piece bills as far as it is known: of an hour of a Capacity Block whose fee no delivered bill has it is not.
-- args: market, effective_cost, billed_cost
-- unit: usd
case when not (market = 'capacity_block' and effective_cost is null) then billed_cost end
