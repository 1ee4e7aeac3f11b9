-- The instance type of a FOCUS line: of our own export as the product attribute names it, else by the usage type, the SKU's details or
-- the description of an instance; null where it states none.
-- args: line
coalesce(case when line.x_line_item_type is not null then type_without_purpose(line.sku_instance_type) end,
    instance_type_of(line.usage_type), type_without_purpose(line.sku_instance_type),
    case when line.bare_id like 'i-%' then described_instance_type(line.charge_description) end)
