-- Share of the chips' dense BF16 peak that the model's own operations took in retained training time (MFU); null where undefined.
-- unit: ratio   over: detail.detail_run_efficiency
-- args: flops
ratio(known_sum(flops), known_sum(training_peak_flops))
