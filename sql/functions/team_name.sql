-- A team as it is named everywhere: by `[policy] team_spelling`, names that differ only in case or outer spaces are one.
-- A name of spaces is none.
-- args: name, spelling
case when trim(name) = '' then null when spelling = 'folded' then lower(trim(name)) else name end
