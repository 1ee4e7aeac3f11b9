-- Tokens of a number of millions of them.
-- args: millions
-- unit: tokens
cast(cast(millions as decimal(28, 10)) * 1000000 as decimal(38, 10))
