-- The S3 bucket whose stored bytes a line bills; null for any other line. The bill never names the prefix or the
-- object. Image repositories, log groups and tables may have a bucket's name, but their ids are ARNs of other services.
-- args: resource_id, usage_type
case when usage_type like '%TimedStorage%'
    then nullif(regexp_extract(resource_id, '^(?:arn:[a-z-]+:s3[a-z-]*:.*[:/])?([^:/]+)$', 1), '') end
