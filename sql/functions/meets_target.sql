-- Whether latencies met their targets; null without a target, or where the latency of one is unknown.
-- args: ttft, ttft_target, itl, itl_target
case when ttft_target is null and itl_target is null then null
    else (ttft_target is null or ttft <= ttft_target) and (itl_target is null or itl <= itl_target) end
