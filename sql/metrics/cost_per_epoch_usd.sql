-- Cost of the chosen runs per completed epoch; null when none completed. An epoch repeated after a restart counts once.
-- unit: usd/epoch   over: core.fct_run
-- args: cost
ratio(known_sum(cost), sum(epoch_completed_count))
