-- Part of what was committed that usage took (facts aws-billing 3.1); null where nothing was committed or a part is unknown.
-- unit: ratio   over: detail.detail_commitment_utilization_daily
-- args: used, committed
ratio(known_sum(used), known_sum(committed))
