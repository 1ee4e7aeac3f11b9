-- Milliseconds as seconds in text, without zeros at the end.
-- args: ms
regexp_replace(cast(cast(ms / 1000 as decimal(20, 3)) as varchar), '[.]?0+$', '')
