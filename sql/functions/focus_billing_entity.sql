-- Who sells what a FOCUS line bills, as a cost and usage report names it: AWS, AWS Marketplace, or another provider.
-- args: host_provider_name, service_provider_name
case when not is_aws_name(host_provider_name) then host_provider_name
    when not is_aws_name(service_provider_name) then 'AWS Marketplace' else 'AWS' end
