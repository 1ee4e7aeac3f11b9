-- Millions in a number of tokens.
-- args: tokens
-- unit: million tokens
cast(cast(tokens as decimal(24, 0)) * 0.000001 as decimal(38, 13))
