"""Full disks, which each library reports in its own words."""

import re
from errno import EDQUOT, ENOSPC

# DuckDB stops before the disk does.
_FULL = re.compile(r"No space left on device|Disk quota exceeded|os error (28|122)\b|max_temp_directory_size")


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind an error."""
    while error is not None:
        if getattr(error, "errno", None) in (ENOSPC, EDQUOT) or _FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def shown_bytes(count: float) -> str:
    """`3.4 MB`, `120 GB`."""
    power = next((power for power in (1, 2) if count < 1000 ** (power + 1)), 3)
    count /= 1000**power
    return f"{count:{'.1f' if count < 10 else ',.0f'}} {('kB', 'MB', 'GB')[power - 1]}"
