-- Part of the held instance-hours that something ran in; null where no hour was held.
-- unit: ratio   over: detail.detail_capacity_use_hourly
-- args: used, unused
ratio(sum(used), sum(used) + sum(unused))
