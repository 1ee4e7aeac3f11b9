-- The part of a cost that falls on the units from `lower` to `upper` of `whole`; a row of touching pieces sums to the
-- cost.
-- args: cost, lower, upper, whole
-- unit: usd
cast(apportioned_usd(cost, upper, whole) - case when lower > 0 then apportioned_usd(cost, lower, whole) else 0 end
    as decimal(20, 10))
