-- Input tokens of some rows; unknown where one has output tokens alone.
-- args: input_tokens, output_tokens
case when count(input_tokens) >= count(output_tokens) then sum(input_tokens) end
