-- The product name of a line that bills Amazon Bedrock, sold by AWS or on its Marketplace; null for any other line.
-- AgentCore runs agents and bills no model.
-- args: service, billing_entity, product_name
case
    when service in ('AmazonBedrock', 'AmazonBedrockService', 'AmazonBedrockFoundationModels')
        or product_name = 'Amazon Bedrock' or (billing_entity = 'AWS Marketplace' and product_name like '%Bedrock%')
        then coalesce(product_name, '')
end
