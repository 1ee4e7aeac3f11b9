-- Operations a token takes in training, forward and backward, attention over the whole sequence counted; recomputation
-- is not.
-- args: params_active, n_layers, n_heads, head_dim, seq_len
-- unit: flop
6.0 * params_active + 12.0 * cast(n_layers as double) * n_heads * head_dim * seq_len
