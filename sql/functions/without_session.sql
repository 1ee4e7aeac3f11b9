-- The caller without its session: sessions are named after people (facts standards-2026 1.2).
-- args: principal
coalesce(nullif(regexp_extract(principal, '^(.*:assumed-role/[^/]+)/', 1), ''), principal)
