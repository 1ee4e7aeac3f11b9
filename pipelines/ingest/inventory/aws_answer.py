"""Values of AWS's answers: times, counts and amounts, as boto3 or saved JSON has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from pipelines.base.errors import SourceError

_EPOCH = datetime(1970, 1, 1)


def moment(value: Any, where: str) -> datetime | None:
    """A naive UTC time, to the millisecond, from a datetime, RFC 3339 text with its zone or seconds since 1970."""
    if value is None or value == "":
        return None
    told: Any = value
    try:
        if isinstance(told, str):
            told = datetime.fromisoformat(told)
        elif isinstance(told, int | float) and not isinstance(told, bool):
            told = (_EPOCH + timedelta(milliseconds=round(told * 1000))).replace(tzinfo=UTC)
        at = told.astimezone(UTC).replace(tzinfo=None) if isinstance(told, datetime) and told.tzinfo else None
    except (ValueError, OverflowError):
        at = None
    if at is None:
        raise SourceError(f"{where} {str(value)[:80]!r}; write a time as RFC 3339 with its zone.")
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def count(value: Any, where: str) -> int | None:
    """A number of instances."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdigit() or int(value) > 1_000_000:
        raise SourceError(f"{where} {str(value)[:80]!r}; write a whole number of instances.")
    return int(value)


def amount(value: Any, where: str) -> Decimal | None:
    """An amount of money."""
    if value is None or value == "":
        return None
    try:
        money = Decimal(str(value))
        if not money.is_finite() or abs(money) >= 10**9:
            raise InvalidOperation
    except InvalidOperation:
        raise SourceError(f"{where} {str(value)[:80]!r}; write an amount of money.") from None
    return money.quantize(Decimal("1e-10"))
