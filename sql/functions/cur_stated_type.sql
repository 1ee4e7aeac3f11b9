-- The instance type a report line states, as a product attribute or at the end of its usage type; null where it states none.
-- over: the lines of stg_aws__cur_line_item
coalesce(product_instance_type, nullif(regexp_extract(line_item_usage_type,
    ':(?:[A-Z][A-Za-z]*-)?((?:ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+|(?:ml\.)?u-[a-z0-9-]+)$', 1), ''))
