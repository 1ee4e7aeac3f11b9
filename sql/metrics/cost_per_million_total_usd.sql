-- Cost per million tokens of all kinds, idle included where the cost is; null where either is unknown.
-- unit: usd/million tokens   over: marts.mart_inference_cost_daily
-- args: cost
usd_per(known_sum(cost) * 1000000, known_sum(input_tokens + cache_read_tokens + cache_write_tokens + output_tokens))
