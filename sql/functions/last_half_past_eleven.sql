-- The last 11:30 UTC at or before a moment, in milliseconds since 1970; Capacity Blocks end then.
-- args: at_ms
(at_ms - 41400000) // 86400000 * 86400000 + 41400000
