-- The unit of a line that bills Amazon Bedrock; null for any other line.
-- args: service, billing_entity, product_name, unit
case when bedrock_product(service, billing_entity, product_name) is not null then unit end
