"""Whether a published price per million follows from the throughput and the hourly rate printed with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise


@dataclass(frozen=True)
class PublishedPrice:
    """A row of somebody's table: units a second, USD an hour, and the USD per million units printed for them.

    `units_ratio` is how many units the price counts for one of the throughput: total tokens an output token.
    """

    name: str
    per_second: Decimal
    rate_usd_per_hour: Decimal
    printed_usd: Decimal
    units_ratio: Decimal = Decimal(1)

    @property
    def recomputed_usd(self) -> Decimal:
        """USD per million units as the inputs give it."""
        return self.rate_usd_per_hour * 1_000_000 / (self.per_second * self.units_ratio * 3600)

    @property
    def printed_usd_per_unit(self) -> Decimal:
        """The printed USD per million units of the throughput: rows of both conventions are ranked by it."""
        return self.printed_usd * self.units_ratio

    @property
    def follows(self) -> bool:
        """Whether the inputs give the printed price, to the places it is printed with."""
        return abs(self.recomputed_usd - self.printed_usd) <= Decimal(1).scaleb(_places(self.printed_usd))


def reconcile(rows: Sequence[PublishedPrice]) -> list[str]:
    """One sentence a row that does not follow from its inputs, and one if the order changes; empty where all does."""
    differences = [
        f"{row.name}: the inputs do not give the output: {row.per_second} a second at ${row.rate_usd_per_hour} an hour "
        f"are ${_cents(row.recomputed_usd)} per million, printed ${row.printed_usd} "
        f"({_factor(row)} times {'less' if row.printed_usd < row.recomputed_usd else 'more'})."
        for row in rows
        if not row.follows
    ]
    ranked = sorted(rows, key=lambda row: row.printed_usd_per_unit)
    if differences and any(_per_unit(better) > _per_unit(worse) for better, worse in pairwise(ranked)):
        order = " < ".join(row.name for row in sorted(rows, key=_per_unit))
        differences.append(f"The ranking differs too: by the inputs it is {order}.")
    return differences


def _per_unit(row: PublishedPrice) -> Decimal:
    return row.recomputed_usd * row.units_ratio


def _places(printed: Decimal) -> int:
    exponent = printed.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def _factor(row: PublishedPrice) -> Decimal:
    larger, smaller = max(row.recomputed_usd, row.printed_usd), min(row.recomputed_usd, row.printed_usd)
    return (larger / smaller).quantize(Decimal("0.1"), ROUND_HALF_UP)
