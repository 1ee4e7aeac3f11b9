-- The part of a cost that falls on the units before `upto` of `whole`.
-- It is the cost itself at `whole`, so the differences along a row of cuts always sum to the cost.
-- args: cost, upto, whole
-- unit: usd
cast(case when upto >= whole then cost else usd_of_steps(steps_before(cast(cost as double), upto, whole)) end
    as decimal(20, 10))
