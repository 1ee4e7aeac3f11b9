"""The price book, and comparisons repriced with it."""
