-- The key of what a Bedrock line of a FOCUS export bills (bedrock_meter_id); null for any other line.
-- args: line
bedrock_meter_id(
    bedrock_product(coalesce(line.x_service_code, line.service_name, ''),
        focus_billing_entity(line), line.service_name),
    coalesce(line.x_service_code, line.service_name, ''), coalesce(line.x_usage_type, line.sku_meter),
    coalesce(line.x_pricing_unit, line.pricing_unit), line.charge_description)
