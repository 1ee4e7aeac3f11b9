-- A sum that is unknown where any part of it is unknown.
-- args: amount
case when count(amount) = count(*) then sum(amount) end
