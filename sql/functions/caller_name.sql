-- The name of a caller: the user or the role of an ARN, or the id of a user of IAM Identity Center.
-- args: principal
nullif(regexp_extract(principal, '([^/]+)$', 1), '')
