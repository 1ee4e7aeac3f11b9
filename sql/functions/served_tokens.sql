-- Tokens that a throughput counts: output; of a model without output, such as an embedding, all.
-- args: input_tokens, cache_read_tokens, output_tokens
coalesce(nullif(output_tokens, 0), input_tokens + coalesce(cache_read_tokens, 0))
