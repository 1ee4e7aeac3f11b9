"""Days and months as people write them."""

import re
from collections.abc import Callable, Iterable
from datetime import date

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
