-- The SkuPriceDetails of FOCUS, JSON; null where no plain instance type is known.
-- args: instance_type
case when regexp_matches(instance_type, '^[A-Za-z0-9.-]+$') then '{"InstanceType": "' || instance_type || '"}' end
