-- Tokens of the whole job, where a run counts those of one device or core; null where it does not record how many there
-- are.
-- args: tokens, tokens_unit, tokens_unit_count
-- unit: tokens
case when coalesce(tokens_unit, 'job') = 'job' then tokens
    when tokens * tokens_unit_count <= 1e15 then tokens * tokens_unit_count end
