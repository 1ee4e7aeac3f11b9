-- The role of a caller that assumed one; null for users.
-- args: principal
nullif(regexp_extract(principal, ':assumed-role/([^/]+)$', 1), '')
