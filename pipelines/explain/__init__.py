"""From a figure down to its bill lines: the bill lines behind a mart row, or the formula behind a name."""
