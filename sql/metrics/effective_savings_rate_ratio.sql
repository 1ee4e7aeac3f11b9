-- What was saved of the list price, unused commitments included and never clamped (facts aws-billing 3.1); null where nothing has a list price or a part is unknown.
-- unit: ratio   over: mart.mart_effective_savings_rate_monthly
-- args: list, used, unused
ratio(sum(list) - known_sum(used) - known_sum(unused), sum(list))
