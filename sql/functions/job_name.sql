-- The name of the SageMaker job a resource is, in small letters, as ARNs may write it; null for any other resource.
-- args: resource_id
case when resource_id like 'arn:%'
    then lower(nullif(regexp_extract(resource_id, ':(?:training|processing|transform)-job/(.+)$', 1), '')) end
