-- Cost per million output tokens, idle included where the cost is; null where either is unknown.
-- unit: usd/million tokens   over: marts.mart_inference_cost_daily
-- args: cost
usd_per(known_sum(cost) * 1000000, known_sum(output_tokens))
