-- The chips of an instance type, as listed; 0 where it has none, unknown where its family is.
-- args: listed_count, listed_family, catalog_type
case when family_of(listed_family, catalog_type) <> 'unknown' then coalesce(listed_count, 0) end
