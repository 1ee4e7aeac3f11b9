-- Cost of the chosen runs per completed epoch; null when none completed, a run cannot know, or the bill lacks a part. An epoch repeated after a restart counts once.
-- unit: usd/epoch   over: core.fct_run
-- args: cost
usd_per(known_sum(if_whole(cost, unbilled_hours > 0)), known_sum(epoch_completed_count))
