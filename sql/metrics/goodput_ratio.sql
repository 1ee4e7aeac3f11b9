-- Seconds nodes spent on training that was kept, over all seconds they were billed for the chosen runs.
-- unit: ratio   over: core.fct_run
-- args: productive, billed
ratio(sum(productive), sum(billed))
