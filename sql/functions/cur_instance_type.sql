-- The instance type of a report line: a product attribute, else the end of the usage type of a line that bills instance time,
-- else, for Spot, the description's first word (facts 3.4); null where it states none.
-- over: the combinations of stg_aws__cur_line_kind with their usage kind
coalesce(
    product_instance_type,
    case when kind.usage_kind is not null then nullif(regexp_extract(line_item_usage_type,
        ':(?:[A-Z][A-Za-z]*-)?((?:ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+|(?:ml\.)?u-[a-z0-9-]+)$', 1), '') end,
    case when kind.usage_kind = 'SpotUsage'
        then nullif(regexp_extract(line_item_line_item_description, '^([a-z][a-z0-9-]*\.[a-z0-9-]+) ', 1), '') end
)
