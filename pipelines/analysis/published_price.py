"""Whether a published figure follows from the inputs printed with it: a price, a break-even, a cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(frozen=True)
class Printed:
    """A figure that somebody printed, and what its inputs, in words, give; `unit` follows it."""

    name: str
    inputs: str
    recomputed: Decimal
    printed: Decimal
    unit: str
    sign: str = ""

    @property
    def follows(self) -> bool:
        """Whether the inputs give the printed figure, to the places it is printed with."""
        return _is_printed_as(self.recomputed, self.printed)

    @property
    def difference(self) -> str:
        """What the inputs give, and how far off the printed figure is."""
        larger, smaller = max(self.recomputed, self.printed), min(self.recomputed, self.printed)
        factor = (larger / smaller).quantize(Decimal("0.1"), ROUND_HALF_UP)
        return (
            f"{self.name}: the inputs do not give the output: {self.inputs} are {self.sign}{_cents(self.recomputed)} "
            f"{self.unit}, printed {self.sign}{self.printed} "
            f"({factor} times {'less' if self.printed < self.recomputed else 'more'})."
        )


@dataclass(frozen=True)
class PublishedPrice:
    """A row of somebody's table: units a second, USD an hour, and the USD per million units printed for them.

    `units_ratio` is how many units the price counts for one of the throughput: total tokens an output token.
    `listed_usd_per_hour` is the price of its machine in the price book, where the row names one.
    """

    name: str
    per_second: Decimal
    rate_usd_per_hour: Decimal
    printed_usd: Decimal
    units_ratio: Decimal = Decimal(1)
    listed_usd_per_hour: Decimal | None = None

    @property
    def figure(self) -> Printed:
        """The printed price and its inputs."""
        inputs = f"{self.per_second} a second at ${self.rate_usd_per_hour} an hour"
        return Printed(self.name, inputs, self._at(self.rate_usd_per_hour), self.printed_usd, "per million", "$")

    @property
    def stale_rate(self) -> str | None:
        """That its hourly rate is not the machine's list price; None where it is, or no machine is named."""
        listed = self.listed_usd_per_hour
        if listed is None or _is_printed_as(listed, self.rate_usd_per_hour):
            return None
        return (
            f"{self.name}: the rate is stale or unknown: ${self.rate_usd_per_hour} an hour, in the price book "
            f"${listed.normalize():f}, at which it is ${_cents(self._at(listed))} per million."
        )

    def _at(self, usd_per_hour: Decimal) -> Decimal:
        return usd_per_hour * 1_000_000 / (self.per_second * self.units_ratio * 3600)


def reconcile(rows: Sequence[PublishedPrice]) -> list[str]:
    """One sentence a row that does not follow from its inputs, or whose rate is not the list price, and one if the
    order changes; empty where all does."""
    wrong = [row.figure.difference for row in rows if not row.figure.follows]
    # Rows of both conventions are ranked per unit of the throughput.
    printed = sorted(rows, key=lambda row: row.printed_usd * row.units_ratio)
    ranked = sorted(printed, key=lambda row: row.figure.recomputed * row.units_ratio)
    if wrong and ranked != printed:
        wrong.append(f"The ranking differs too: by the inputs it is {' < '.join(row.name for row in ranked)}.")
    return [*(row.stale_rate for row in rows if row.stale_rate), *wrong]


def break_even(name: str, usd_per_month: Decimal, usd_per_million: Decimal, printed: Decimal) -> Printed:
    """A printed break-even in million tokens a month: a fixed cost over a price, whatever the utilization."""
    inputs = f"${usd_per_month} a month at ${usd_per_million} per million"
    return Printed(name, inputs, usd_per_month / usd_per_million, printed, "million tokens a month")


def active_capacity(name: str, windows: Decimal, units: Decimal, usd_per_minute: Decimal, printed: Decimal) -> Printed:
    """A printed cost of a Custom Model Import: each active window is five minutes of every unit (facts serving 4)."""
    inputs = f"{windows} windows of five minutes of {units} units at ${usd_per_minute} a minute"
    return Printed(name, inputs, windows * 5 * units * usd_per_minute, printed, "in all", "$")


def _is_printed_as(amount: Decimal, printed: Decimal) -> bool:
    return abs(amount - printed) <= Decimal(1).scaleb(int(printed.as_tuple().exponent))


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
