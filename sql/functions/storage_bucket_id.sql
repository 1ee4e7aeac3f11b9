-- The S3 bucket whose stored bytes a line bills; null for any other line. The bill never names the prefix or the
-- object.
-- args: resource_id, usage_type
case when usage_type like '%TimedStorage%' then regexp_extract(resource_id, '([^:/]+)$', 1) end
