-- The accelerator family of an instance type, as listed; unknown where its name looks like an accelerator's and no list
-- has it.
-- args: listed_family, catalog_type
coalesce(listed_family,
    case when regexp_matches(catalog_type, '^(u-)?(p[0-9]|g[0-9]|gr[0-9]|trn|inf|dl[0-9])')
        then 'unknown' else 'none' end)
