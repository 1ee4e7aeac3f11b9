-- The key of what a Bedrock line bills in which unit (stg_aws__bedrock_meter); null where `product` is (bedrock_product).
-- A Marketplace description names its unit in the third field.
-- args: product, service, usage_type, unit, description
case when product is not null then concat_ws('|', service, coalesce(usage_type, ''), product, coalesce(unit, ''),
    split_part(coalesce(description, ''), '|', 3)) end
