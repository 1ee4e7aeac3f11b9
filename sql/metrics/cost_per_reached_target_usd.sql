-- Cost of the chosen runs up to their target, of those that never reached it whole, per job that did; null when none did.
-- unit: usd/run   over: core.fct_run
-- args: to_target, whole
usd_per(known_sum(coalesce(to_target, if_whole(whole, unbilled_hours > 0))), count(case when is_success then to_target end))
