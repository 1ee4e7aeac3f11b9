"""The price book, and comparisons priced again by it."""
