-- A cost per unit, or the part of a cost, to ten places, rounded half up by integers so that every engine gives the
-- same; null where there is nothing to divide by. The whole dollars are apart, so that no sum is too large.
-- args: cost, units
-- unit: usd
cast(cast(cast(floor(cast(cost as double) / nullif(cast(units as double), 0)) as bigint) as decimal(20, 0))
    + cast(cast(floor((cast(cost as double) / nullif(cast(units as double), 0)
        - floor(cast(cost as double) / nullif(cast(units as double), 0))) * 1e10 + 0.5) as bigint) as decimal(20, 0))
    * cast(0.0000000001 as decimal(10, 10)) as decimal(38, 10))
