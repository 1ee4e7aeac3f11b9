-- Whether a cost is of a run that a tag alone names. What is shared is its cost on its own days alone.
-- args: provisional, cost
provisional.is_provisional
and provisional.run_key = case when cost.bucket in ('unattributed', 'shared') then folded(cost.tag_run_id) end
and provisional.first_date <= case cost.bucket when 'shared' then cost.usage_date else date '9999-12-31' end
and provisional.last_date >= case cost.bucket when 'shared' then cost.usage_date else date '0001-01-01' end
