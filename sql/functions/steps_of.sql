-- A cost as a whole number of steps of 1e-10: integers add up several times as fast as decimals, as exactly.
-- args: cost
-- DuckDB takes a microsecond to round a decimal, so doubles do it where they cannot err: below 2**50 steps a double is
-- less than half a step away, at any engine's rounding.
case when abs(cost) < 100000 then cast(round(cast(cast(cost as decimal(20, 10)) as double) * 1e10) as bigint)
    else cast(cast(cost as decimal(20, 10)) * cast(10000000000 as decimal(11, 0)) as bigint) end
