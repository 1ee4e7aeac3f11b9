-- Cost of the chosen runs per durable, complete, resumable checkpoint; null when none was saved, or a run cannot know.
-- unit: usd/checkpoint   over: core.fct_run
-- args: cost
usd_per(known_sum(cost), known_sum(checkpoint_durable_count))
