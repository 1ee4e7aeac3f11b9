"""SQL over the published marts, and the list of them."""
