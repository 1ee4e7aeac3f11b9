-- Cost of the chosen runs per million tokens seen once; null when no tokens were counted or the bill lacks a part.
-- unit: usd/million tokens   over: core.fct_run
-- args: cost
usd_per(known_sum(if_whole(cost, unbilled_hours > 0)) * 1000000, sum(tokens_seen_count))
