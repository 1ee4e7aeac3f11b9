-- The instance type that a line's description names: `per On Demand Linux c5.2xlarge Instance Hour`.
-- args: description
nullif(regexp_extract(description, '([a-z][a-z0-9-]*\.[a-z0-9-]+)[^.]* Instance[ -][Hh]our', 1), '')
