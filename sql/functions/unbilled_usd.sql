-- What hours that are on no bill cost at list price: unknown where any of them has no price.
-- args: hours, amount
case when count(amount) = count(hours) then sum(amount) end
