-- A UTC moment that AWS writes as text, `2026-07-14T10:00:00.000Z`, to the second; null for any other text.
-- args: text
try_cast(replace(substr(text, 1, 19), 'T', ' ') as timestamp)
