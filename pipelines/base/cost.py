"""The three costs of a line: net amortized, at public on-demand prices, and as on the bill."""

BASES = ("effective", "list", "billed")
