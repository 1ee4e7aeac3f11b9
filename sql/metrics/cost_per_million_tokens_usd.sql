-- Cost of the chosen runs per million tokens seen once; null when no tokens were counted.
-- unit: usd/million tokens   over: core.fct_run
-- args: cost
usd_per(known_sum(cost) * 1000000, sum(tokens_seen_count))
