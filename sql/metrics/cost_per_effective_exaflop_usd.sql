-- Cost of the chosen runs per 10^18 operations of 6 × active parameters × tokens seen once; null where either is unknown.
-- unit: usd/exaflop   over: detail.detail_run_efficiency
-- args: cost
usd_per(known_sum(cost), known_sum(effective_exaflop_count))
