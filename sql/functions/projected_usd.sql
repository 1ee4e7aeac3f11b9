-- What a cost over some days comes to over others, to the cent: a forecast is no more exact.
-- args: cost, basis_days, days
-- unit: usd
cast(cast(cast(floor(cast(cost as double) * cast(days as double) / nullif(cast(basis_days as double), 0)
    * 100 + 0.5) as bigint) as decimal(20, 0)) * cast(0.01 as decimal(10, 2)) as decimal(38, 10))
