-- Part of what was committed that usage took (facts aws-billing 3.1); null where nothing was committed.
-- unit: ratio   over: core.fct_commitment_daily
-- args: used, committed
ratio(sum(used), sum(committed))
