"""How a figure is written on a page: rounding, thousands, units. The only place that rounds money."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import wraps
from typing import Any

from markupsafe import Markup

from pipelines.base.groups import grouped

Number = Decimal | float | int

UNKNOWN = "n/a"
_MARKED = Markup('<span class="unknown">n/a</span>')
MINUS = "\u2212"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_LARGE = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


def rounded(value: Number, places: int) -> str:
    """The magnitude with thousands separators, rounded half up."""
    number = abs(Decimal(str(value))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{number:,f}"


def places_of(value: Number) -> int:
    """Decimals a unit cost needs: none from a thousand, cents from one, else three figures, four decimals at most."""
    size = abs(Decimal(str(value)))
    if size >= 1000:
        return 0
    if size >= 1 or size == 0:
        return 2
    return min(2 - size.adjusted(), 4)


def money(value: Number | None, currency: str | None, places: int) -> str:
    """An amount with its currency: $1,234 or EUR 1,234. A nonzero amount that rounds to zero reads <$1 or >-$1.

    Without a currency it is unknown: it is of a run on no bill, or billed in several.
    """
    if value is None or not currency:
        return UNKNOWN
    symbol = "$" if currency == "USD" else f"{currency}\u00a0"
    number = rounded(value, places)
    sign = MINUS if value < 0 else ""
    if value == 0 or number.strip("0.,"):
        return f"{sign}{symbol}{number}"
    return f"{'>' if sign else '<'}{sign}{symbol}{Decimal(1).scaleb(-places):f}"


def whole(value: Number | None) -> str:
    """A count with thousands separators."""
    return UNKNOWN if value is None else f"{MINUS if value < 0 else ''}{rounded(value, 0)}"


def hours(value: Number | None) -> str:
    """Hours: one decimal below a hundred."""
    return UNKNOWN if value is None else f"{MINUS if value < 0 else ''}{rounded(value, 0 if abs(value) >= 100 else 1)}"


def large(value: Number | None) -> str:
    """A count too long to read as digits: 4.2 billion."""
    if value is None:
        return UNKNOWN
    for size, name in _LARGE:
        if value >= size:
            return f"{rounded(Decimal(str(value)) / size, 1)} {name}"
    return whole(value)


def percent(ratio: Number | None) -> str:
    """A ratio as a percentage with one decimal."""
    return UNKNOWN if ratio is None else f"{MINUS if ratio < 0 else ''}{rounded(Decimal(str(ratio)) * 100, 1)}%"


def day(value: date | datetime | None) -> str:
    """2 July 2026."""
    return UNKNOWN if value is None else f"{value.day} {_MONTHS[value.month - 1]} {value.year}"


def short_day(value: date | datetime | None) -> str:
    """2 Jul 2026."""
    return UNKNOWN if value is None else f"{value.day} {_MONTHS[value.month - 1][:3]} {value.year}"


def month(value: date | datetime | str) -> str:
    """July 2026, of a date or of 'YYYY-MM'."""
    year, number = (value.year, value.month) if isinstance(value, date) else map(int, value.split("-")[:2])
    return f"{_MONTHS[number - 1]} {year}"


def moment(value: datetime) -> str:
    """2 July 2026, 06:14 UTC; a time without a zone is UTC."""
    value = value.astimezone(UTC) if value.tzinfo else value
    return f"{day(value)}, {value:%H:%M} UTC"


def month_span(months: Sequence[date] | Sequence[str]) -> str:
    """The billing months covered, in words, from dates or 'YYYY-MM' names: June and July 2026."""
    names = [month(name) for name in sorted(months)]
    if len(names) == 2 and names[0][-4:] == names[1][-4:]:
        names[0] = names[0][:-5]
    if len(names) <= 2:
        return " and ".join(names) or "no billing month"
    return f"{names[0]} to {names[-1]} ({len(names)} months)"


def span(days: Sequence[date]) -> str:
    """First to last day, shared parts once: 5–6 Jun 2026, 30 Jun – 2 Jul 2026.

    An end at midnight is exclusive: the last day is the one before.
    """
    first, last = days
    if isinstance(last, datetime) and last > first:
        last -= timedelta.resolution
    if (first.year, first.month, first.day) == (last.year, last.month, last.day):
        return short_day(last)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{short_day(last)}"
    start = short_day(first)
    return f"{start[:-5] if first.year == last.year else start} – {short_day(last)}"


def plural(count: Number, one: str, many: str | None = None) -> str:
    """3 runs, 1 run, no runs, 2.50 epochs."""
    noun = one if count == 1 else many or f"{one}s"
    shown = whole(count) if count == int(count) else f"{count:,.2f}"
    return f"{'no' if count == 0 else shown} {noun}"


def listing(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def usd(value: Number | None, currency: str) -> str:
    """Money without decimals."""
    return money(value, currency, 0)


def cents(value: Number | None, currency: str | None) -> str:
    """Money with two decimals."""
    return money(value, currency, 2)


def exact_usd(value: Number | None, currency: str) -> str:
    """Money in cents, with every further digit that it has."""
    digits = 0 if value is None else -int(Decimal(str(value)).normalize().as_tuple().exponent)
    return money(value, currency, max(2, digits))


def unit_usd(value: Number | None, currency: str) -> str:
    """Money with the decimals a unit cost needs."""
    return money(value, currency, 0 if value is None else places_of(value))


def figure(value: Number | None) -> str:
    """A number without a unit, to four significant figures."""
    if value is None:
        return UNKNOWN
    size = abs(Decimal(str(value)))
    places = 0 if size >= 1000 or size == 0 else min(max(3 - size.adjusted(), 0), 10)
    return f"{MINUS if value < 0 else ''}{rounded(value, places)}"


def minutes(seconds: Number | None) -> str:
    """Seconds as minutes: one decimal below a hundred."""
    return UNKNOWN if seconds is None else hours(Decimal(str(seconds)) / 60)


def hours_long(seconds: Number | None) -> str:
    """Seconds as hours, to four significant figures."""
    return UNKNOWN if seconds is None else figure(Decimal(str(seconds)) / 3600)


def gib(size: Number | None) -> str:
    """Bytes as GiB, to four significant figures."""
    return UNKNOWN if size is None else figure(Decimal(size) / 2**30)


def where(rows: Iterable[Mapping[str, Any]], **values: Any) -> list[Mapping[str, Any]]:
    """The rows that have all these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def cut(rows: Iterable[Mapping[str, Any]], most: int = 100) -> list[Mapping[str, Any]]:
    """The first rows of each currency, as many as a page has room for; what has no team is always one of them."""
    groups = grouped(rows, lambda row: row["currency"]).values()
    return [row for group in groups for at, row in enumerate(group) if at < most or row.get("team") == "no team"]


def bases(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The cost bases of the rows, each with what it is called; those with equal costs in all rows are one."""
    called = grouped(("effective", "list", "billed"), lambda basis: tuple(row[f"{basis}_cost_usd"] for row in rows))
    return [(names[0], listing(names).capitalize()) for names in called.values()]


def alike(rows: Sequence[Mapping[str, Any]], *names: str) -> list[list[Mapping[str, Any]]]:
    """The rows in groups, each of equal values of these columns, by their first row."""
    return list(grouped(rows, lambda row: tuple(row[name] for name in names)).values())


def formats() -> dict[str, Callable[..., Any]]:
    """The filters of a template. Money is never written without its currency; what is unknown is marked."""
    marked = (
        usd,
        cents,
        exact_usd,
        unit_usd,
        whole,
        hours,
        large,
        figure,
        percent,
        minutes,
        hours_long,
        gib,
        day,
        short_day,
    )
    words = (month, moment, month_span, span, plural, listing, where, cut, bases, alike)
    return {function.__name__: function for function in (*map(_marking, marked), *words)}


def _marking(form: Callable[..., str]) -> Callable[..., str]:
    """The filter, which marks an unknown value for the style of the page."""

    @wraps(form)
    def marking(value: Any, *arguments: Any) -> str:
        return _MARKED if value is None else form(value, *arguments)

    return marking
