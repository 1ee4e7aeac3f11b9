-- The part of a cost that falls before a moment: of a fee for time to come only the time before it, of anything else
-- all.
-- args: cost, line_class, started_at, ended_at, moment
-- unit: usd
-- Only fees of commitments are billed for time to come, and only use has a class.
case when line_class is null and ended_at > moment
    then apportioned_usd(cost, greatest(unix_ms(moment) - unix_ms(started_at), 0),
        unix_ms(ended_at) - unix_ms(started_at)) else cost end
