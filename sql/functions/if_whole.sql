-- An amount of which nothing is missing; null where a part of it is.
-- args: amount, is_partial
case when is_partial is distinct from true then amount end
