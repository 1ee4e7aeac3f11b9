-- Part of what a kind of commitment can cover that it did cover; null where there was nothing to cover,
-- or where the list price of some of it is unknown.
-- unit: ratio   over: detail.detail_commitment_coverage_hourly
-- args: covered, eligible, unpriced
case when sum(unpriced) = 0 then ratio(sum(covered), sum(eligible)) end
