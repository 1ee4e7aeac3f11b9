-- Seconds nodes spent on training that was kept, over all seconds they were billed for the chosen runs; null without recorded phases.
-- unit: ratio   over: core.fct_run
-- args: productive, billed
ratio(known_sum(productive), sum(billed))
