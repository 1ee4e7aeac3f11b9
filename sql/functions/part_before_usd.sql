-- The part of a cost for a stretch of time that falls before a moment.
-- args: cost, started_at, ended_at, moment
-- unit: usd
apportioned_usd(cost, greatest(unix_ms(moment) - unix_ms(started_at), 0), unix_ms(ended_at) - unix_ms(started_at))
