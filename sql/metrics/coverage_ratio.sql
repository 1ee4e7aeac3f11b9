-- Part of what a kind of commitment can cover that it did cover; null where there was nothing to cover.
-- unit: ratio   over: detail.detail_commitment_coverage_hourly
-- args: covered, eligible
ratio(sum(covered), sum(eligible))
