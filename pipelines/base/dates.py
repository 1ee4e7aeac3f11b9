"""Days and months as people write them."""

import re
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
