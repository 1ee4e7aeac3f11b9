-- The month of a time as YYYY-MM.
-- args: time
substr(cast(time as varchar), 1, 7)
