-- What a usage type of Bedrock bills: which tokens, or provisioned throughput; null for any other service. Cached
-- tokens are kinds of
-- their own: leaving them out is the commonest gap to the bill (facts aws-billing 4.6).
-- args: token_usage_type
case
    when token_usage_type is null then null
    when lower(token_usage_type) like '%cache%read%token%' then 'cache_read'
    when lower(token_usage_type) like '%cache%write%token%' then 'cache_write'
    when lower(token_usage_type) like '%input%token%' then 'input'
    when lower(token_usage_type) like '%output%token%' then 'output'
    when token_usage_type like '%ProvisionedThroughput%' or token_usage_type like '%ModelUnits%' then 'provisioned'
    else 'other'
end
