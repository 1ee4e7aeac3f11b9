-- A cost from its steps of 1e-10.
-- args: steps
-- unit: usd
cast(steps as decimal(20, 0)) * cast(0.0000000001 as decimal(10, 10))
