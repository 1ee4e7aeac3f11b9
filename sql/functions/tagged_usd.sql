-- The cost of a line that can carry a tag and has this one, else nothing; only usage of a named resource can.
-- args: charge_category, resource_id, tag, cost
-- unit: usd
case when charge_category = 'Usage' and resource_id is not null and tag is not null then cost else 0 end
