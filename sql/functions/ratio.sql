-- A quotient to six places, rounded half up by integers so that every engine gives the same; null where there is
-- nothing to divide by, and for more than any table holds.
-- args: part, whole
cast(try_cast(floor(cast(part as double) / nullif(cast(whole as double), 0) * 1e6 + 0.5) as bigint) as decimal(20, 0))
    * cast(0.000001 as decimal(10, 6))
