-- Who sells what a FOCUS line bills, as a cost and usage report names it: AWS, AWS Marketplace, or another provider.
-- args: provider_name, publisher_name
case when not is_aws_name(provider_name) then provider_name
    when not is_aws_name(publisher_name) then 'AWS Marketplace' else 'AWS' end
