-- Cost of the chosen runs per completed epoch; null when none completed, or a run cannot know. An epoch repeated after a restart counts once.
-- unit: usd/epoch   over: core.fct_run
-- args: cost
usd_per(known_sum(cost), known_sum(epoch_completed_count))
