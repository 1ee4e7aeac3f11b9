"""Days, months and moments as people write them."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time

from pipelines.base.errors import UsageError, shown


def date_of(text: str) -> date:
    """The date of a day YYYY-MM-DD; UsageError for other text."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{shown(text)} is not a date; expected YYYY-MM-DD.") from None


def month_date(text: str) -> date:
    """The first day of a month YYYY-MM; UsageError for other text."""
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text):
        raise UsageError(f"{shown(text)} is not a month; expected YYYY-MM.")
    return date_of(f"{text}-01")


def moment_of(as_of: str) -> datetime:
    """The moment `--as-of` means: the end of a day in UTC, or a time with its zone. UsageError for anything else."""
    # A time of the first or last day may have none in UTC.
    with suppress(ValueError, OverflowError):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", as_of):
            return datetime.combine(date.fromisoformat(as_of), time.max, UTC)
        if (at := datetime.fromisoformat(as_of)).tzinfo:
            return at.astimezone(UTC)
    raise UsageError(
        f"--as-of {as_of} is neither a day nor a time with its zone; write 2026-08-31 or 2026-08-31T12:00:00Z."
    )


# More stretches of months than this are as hard to read as the months.
_MOST_STRETCHES = 4


def month_spans(months: Iterable[str], word: Callable[[str], str] = str) -> str:
    """Months YYYY-MM, each as its `word`; of three or more in a row the first and the last: 2026-01 to 2026-03.

    Months with many gaps are their first and last, and how many there are.
    """
    stretches: list[list[str]] = []
    for month in sorted({*months}):
        if stretches and _number(month) == _number(stretches[-1][-1]) + 1:
            stretches[-1].append(month)
        else:
            stretches.append([month])
    if len(stretches) > _MOST_STRETCHES:
        count = sum(map(len, stretches))
        return f"{word(stretches[0][0])} to {word(stretches[-1][-1])} ({count} months)"
    return ", ".join(
        f"{word(found[0])} to {word(found[-1])}" if len(found) > 2 else ", ".join(map(word, found))
        for found in stretches
    )


def _number(month: str) -> int:
    return int(month[:4]) * 12 + int(month[5:])
