-- A team as it is named everywhere: by `[policy] team_spelling`, names that differ only in case or outer spaces are one.
-- args: name, spelling
case when spelling = 'folded' then lower(trim(name)) else name end
