-- The instance type a usage type ends in, null where it names none: `USE1-Train:ml.p4d.24xlarge` -> `ml.p4d.24xlarge`.
-- args: usage_type
nullif(regexp_extract(usage_type, ':((ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+)$', 1), '')
