"""Limits that readers and tables share."""

# Up to how many evaluations in a row that meet the target are priced; `[policy] target_passes` is within it.
MOST_PASSES = 5
# More steps, tokens, samples, bytes or parameters than anything has, and more accelerators; products of them must fit.
MOST, MOST_ACCELERATORS = 10**15, 10**6
# How much a packed file may unpack to. Bills, tables and logs pack some 30 times.
UNPACK_RATIO = 200
# What a small file may always unpack to: a few equal lines pack better than any large file.
_HARMLESS_BYTES = 64 << 20


def most_bytes(packed_bytes: int, ratio: float = UNPACK_RATIO) -> float:
    """The bytes that a file of `packed_bytes` may unpack to: `ratio` times as many, and 64 MiB in any case."""
    return max(ratio * packed_bytes, _HARMLESS_BYTES)
