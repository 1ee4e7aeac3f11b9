"""From a figure down to what it rests on: the bill lines behind a mart row, or the formula behind a name."""
