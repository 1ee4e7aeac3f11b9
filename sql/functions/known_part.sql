-- What is known of a sum; null where a part of it is unknown and the known ones come to nothing.
-- args: amount
nullif(coalesce(sum(amount), 0), case when count(amount) < count(*) then 0 end)
