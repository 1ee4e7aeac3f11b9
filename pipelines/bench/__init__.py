"""`make bench`: bills and runs of any size, generated, and what building them costs."""
