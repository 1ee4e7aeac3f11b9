-- Whether an instance type is called like those with accelerators, so that one nobody has listed is not passed over.
-- args: instance_type
regexp_matches(instance_type, '^(p[0-9]|g[0-9]|gr[0-9]|trn|inf|dl[0-9])')
