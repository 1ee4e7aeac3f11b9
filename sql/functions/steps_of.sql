-- A cost as a whole number of steps of 1e-10: integers add up several times as fast as decimals, as exactly.
-- args: cost
cast(cast(cost as decimal(20, 10)) * cast(10000000000 as decimal(11, 0)) as bigint)
