-- Who sells what a FOCUS line bills, as a cost and usage report names it: AWS, AWS Marketplace, or another provider.
-- A tax or an adjustment has no host: there the issuer shows the provider, else the seller does (standards-2026 1.3).
-- args: line
coalesce(line.x_billing_entity, case
    when not is_aws_name(coalesce(line.host_provider_name, case when is_aws_name(line.invoice_issuer_name)
        then line.invoice_issuer_name end, line.service_provider_name))
        then coalesce(line.host_provider_name, line.service_provider_name)
    when not is_aws_name(line.service_provider_name) then 'AWS Marketplace' else 'AWS' end)
