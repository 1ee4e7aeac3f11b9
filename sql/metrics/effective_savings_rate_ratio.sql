-- What was saved of the list price, unused commitments included and never clamped (facts aws-billing 3.1); null where nothing has a list price or unused commitments are unknown.
-- unit: ratio   over: mart.mart_effective_savings_rate_monthly
-- args: list, used, unused
ratio(sum(list) - sum(used) - known_sum(unused), sum(list))
