-- What ref_instance_type calls the instance type of a line that bills instance time; null for any other line,
-- empty where it names none (a nullif here would run the pattern twice).
-- args: kind_class, usage_type, instance_type
case
    -- A dedicated host is billed by machine family.
    when kind_class = 'host' then regexp_extract(usage_type, ':([a-z][a-z0-9-]*)', 1)
    when kind_class is not null then regexp_extract(instance_type,
        '^(?:ml\.)?(u-[a-z0-9-]+|[a-z][a-z0-9-]*\.[a-z0-9]+(?:-[a-z0-9]+)*)', 1)
end
