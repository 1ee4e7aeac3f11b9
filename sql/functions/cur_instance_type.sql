-- The instance type of a report line: a product attribute, else the end of the usage type of a line that bills instance
-- time, else, for Spot, the description's first word (facts 3.4); null where it states none.
-- args: product_instance_type, known_kind, usage_type, description
coalesce(
    type_without_purpose(product_instance_type),
    case when known_kind is not null then nullif(regexp_extract(usage_type,
        ':(?:[A-Z][A-Za-z]*-)?((?:ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+|(?:ml\.)?u-[a-z0-9-]+)$', 1), '') end,
    case when known_kind = 'SpotUsage'
        then nullif(regexp_extract(description, '^([a-z][a-z0-9-]*\.[a-z0-9-]+) ', 1), '') end
)
