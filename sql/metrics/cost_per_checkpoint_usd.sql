-- Cost of the chosen runs per durable, complete, resumable checkpoint; null when none was saved, a run cannot know, or the bill lacks a part.
-- unit: usd/checkpoint   over: core.fct_run
-- args: cost
usd_per(known_sum(if_whole(cost, unbilled_hours > 0)), known_sum(checkpoint_durable_count))
