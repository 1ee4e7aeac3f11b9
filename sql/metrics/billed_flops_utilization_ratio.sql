-- The same over all billed time, start-up, saves, evaluation and lost work included: what was paid for and used.
-- unit: ratio   over: detail.detail_run_efficiency
-- args: flops
ratio(known_sum(flops), known_sum(billed_peak_flops))
