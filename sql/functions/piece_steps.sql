-- The steps of 1e-10 of a cost that fall on the units from `lower` to `upper` of `whole`, cut as piece_usd cuts them.
-- args: steps, cost, lower, upper, whole
case when upper >= whole then steps else steps_before(cost, upper, whole) end
    - case when lower > 0 then steps_before(cost, lower, whole) else 0 end
