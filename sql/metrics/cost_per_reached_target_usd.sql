-- Cost of the chosen runs up to their target, of those that never reached it whole, per run that did; null when none did.
-- unit: usd/run   over: core.fct_run
-- args: to_target, whole
usd_per(known_sum(coalesce(to_target, whole)), count(to_target))
