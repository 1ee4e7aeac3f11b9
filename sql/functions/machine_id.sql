-- A machine as the bill may name it. A SageMaker job may be recorded by its name alone; ARNs may be in lower case.
-- args: resource_id, instance_type
case when (resource_id like '%-job/%' and resource_id not like '%:%')
        or (instance_type like 'ml.%' and not regexp_matches(resource_id, ':|^i-'))
    then lower(regexp_extract(resource_id, '([^/]+)$', 1))
    else regexp_replace(resource_id, '^arn:.*:instance/', '') end
