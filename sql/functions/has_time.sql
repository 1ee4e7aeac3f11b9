-- Whether usage has time to share out; under half a millisecond it has none.
-- args: usage_quantity
usage_quantity * 7200000 >= 1
