"""A made-up company's bucket and run events, for `trainledger demo` and for the benchmark.

Plays AWS, so it knows AWS column names; it reads no bill.
"""
