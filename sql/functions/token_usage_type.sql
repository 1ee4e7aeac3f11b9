-- What a line of Bedrock bills, by its usage type; null for any other service.
-- args: service, usage_type, million_tokens
case when service like 'AmazonBedrock%' or million_tokens is not null then coalesce(usage_type, '') end
