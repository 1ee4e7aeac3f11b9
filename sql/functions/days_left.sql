-- Whole days from a moment to an end, 0 where it has come; null where no end is known.
-- args: now_at, ended_at
case when ended_at > now_at then date_diff('day', now_at, ended_at) when ended_at is not null then 0 end
