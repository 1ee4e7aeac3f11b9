"""Where serving by the hour and serving by the token cost the same (facts serving 4), and what days of traffic show.

Prices are USD per million tokens, capacity is USD an hour of a replica. Throughputs and volumes count tokens of all
kinds, input and cached ones too: a price of output alone is another unit.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import compress
from math import ceil

from pipelines.analysis.estimate import FEWEST_CLUSTERS, Estimate, estimate, sample
from pipelines.analysis.verdict import percent

KINDS = ("input", "cache_read", "cache_write", "output")
MONTH_HOURS = 730
MONTH_DAYS = MONTH_HOURS / 24
SELF_HOST, MANAGED, MOVE, STAY, NEVER = "self-host", "managed", "move", "stay", "never"
UNDECIDED = "not enough evidence"


@dataclass(frozen=True)
class Capacity:
    """Replicas that are paid by the hour, traffic or none; `monthly_usd` is what does not grow with them.

    `tokens_per_second` is what one serves while the latency target holds; None where that is unknown.
    """

    usd_per_hour: float
    tokens_per_second: float | None = None
    replicas: int = 1
    monthly_usd: float = 0.0

    @property
    def month_usd(self) -> float:
        return self.replicas * self.usd_per_hour * MONTH_HOURS + self.monthly_usd

    @property
    def month_tokens(self) -> float | None:
        """Tokens a month that one replica can serve."""
        return None if self.tokens_per_second is None else self.tokens_per_second * MONTH_HOURS * 3600

    def for_peak(self, tokens_per_second: float) -> "Capacity":
        """As many replicas as serve a peak; one where their throughput is unknown."""
        needed = tokens_per_second / self.tokens_per_second if self.tokens_per_second else 1
        return replace(self, replicas=max(1, ceil(needed * (1 - 1e-12))))


def blended_price(tokens: Mapping[str, float], prices: Mapping[str, float | None]) -> float | None:
    """USD per million tokens of this mix of KINDS; None where a kind with tokens has no price, or there are none.

    A cached token without a price of its own costs what an input token does.
    """
    used = {kind: tokens[kind] for kind in KINDS if tokens.get(kind)}
    price = {kind: prices.get(kind) for kind in used}
    price |= {kind: prices.get("input") for kind in used if price[kind] is None and kind.startswith("cache")}
    if not used or None in price.values():
        return None
    return sum(used[kind] * (price[kind] or 0.0) for kind in used) / sum(used.values())


def crossover_tokens(capacity: Capacity, price: float) -> float | None:
    """Tokens a month from which capacity costs less than tokens at `price`; None for never.

    Replicas are added until they can serve that volume. Where throughput is unknown they are taken to suffice.
    """
    each = capacity.month_tokens
    if price <= 0:
        return None
    if each is not None:
        margin = each * price / 1e6 - capacity.usd_per_hour * MONTH_HOURS
        if margin < 0 or (margin == 0 and capacity.monthly_usd > 0):
            return None
        if margin > 0:
            capacity = replace(capacity, replicas=max(capacity.replicas, ceil(capacity.monthly_usd / margin)))
    return capacity.month_usd / price * 1e6


def crossover_utilization(capacity: Capacity, price: float) -> float | None:
    """Share of a replica's throughput at which it costs what tokens do, above 1 for never; None where it is unknown."""
    each = capacity.month_tokens
    return capacity.usd_per_hour * MONTH_HOURS / (each * price / 1e6) if each and price > 0 else None


def break_even_tokens_per_second(usd_per_hour: float, price: float) -> float | None:
    """Tokens a second, all month, that cost as much by the token as an hour of capacity does."""
    return usd_per_hour * 1e6 / (3600 * price) if price > 0 else None


def saving_of_days(
    days: Sequence[date], is_used: Sequence[bool], baseline: Sequence[float], candidate: Sequence[float]
) -> Estimate:
    """The saving of the candidate over the same days of traffic: days are the replicates, weeks the clusters.

    Each day is a pair, for both sides serve its tokens. A week without a used day shows nothing by itself: what it
    costs counts in the last week with one, or the first. Where every week saves the same, prices alone decide and the
    interval is that saving. ValueError where a side cost nothing.
    """
    weeks = [day - timedelta(days=day.weekday()) for day in days]
    used = sorted(set(compress(weeks, is_used)))
    kept = [
        week in used or bool(before or after) for week, before, after in zip(weeks, baseline, candidate, strict=True)
    ]
    clusters = [max(bisect_right(used, week), 1) for week in compress(weeks, kept)]
    # A day is not a run that can fail.
    one, other = (
        replace(sample([*compress(costs, kept)], clusters=clusters), can_fail=False) for costs in (baseline, candidate)
    )
    found = estimate(one, other, [(number, number) for number in range(sum(kept))])
    if found.missing is None:
        return found
    count = len(used)
    if count >= FEWEST_CLUSTERS:
        return replace(found, low=found.saving, high=found.saving, missing=None)
    return replace(found, missing=f"{count} week{'s' * (count != 1)} of traffic; an interval needs {FEWEST_CLUSTERS}")


def judge(
    is_capacity: tuple[bool, bool],
    estimates: Mapping[str, Estimate | None],
    never: bool,
    gaps: Sequence[str],
    faults: Sequence[str],
) -> tuple[str, str, int | None]:
    """Verdict, its reason, and which side it recommends: 0 the baseline, 1 the candidate, None neither.

    `is_capacity` is of either side, `estimates` are by basis. `gaps` leave it open whether the candidate could take
    the traffic; they matter only where it is cheaper. Arithmetic comes first: what loses at full use never wins. The
    side that loses needs no proof of its quality.
    """
    if faults:
        return UNDECIDED, "; ".join(faults), None
    reason, cheaper = _cheaper(estimates)
    if never:
        cheaper = 1 if is_capacity[0] else 0
        reason = "at its throughput, even capacity in full use costs more than tokens"
    if cheaper is None:
        return UNDECIDED, reason, None
    if cheaper == 1 and gaps:
        return UNDECIDED, "; ".join([f"the candidate may be cheaper ({reason})", *gaps]), None
    if never:
        return NEVER, reason, cheaper
    if is_capacity[0] == is_capacity[1]:
        return (STAY, MOVE)[cheaper], reason, cheaper
    return SELF_HOST if is_capacity[cheaper] else MANAGED, reason, cheaper


def _cheaper(estimates: Mapping[str, Estimate | None]) -> tuple[str, int | None]:
    """Why, and the side that is cheaper on the effective basis and at list prices alike."""
    sides = {"more expensive": 0, "cheaper": 1}
    concluded = set()
    words = []
    is_interval = False
    for basis, one in estimates.items():
        if one is None:
            return f"the {basis} cost of a side is not known", None
        if one.low is None or one.high is None:
            return one.missing or "no interval", None
        concluded.add(one.conclusion)
        is_interval |= one.low != one.high
        low, high = percent(one.low), percent(one.high)
        span = f"{low} in every week" if one.low == one.high else low if low == high else f"{low} to {high}"
        words.append(f"{span} ({basis})")
    reason = f"the saving {'(95% interval) ' if is_interval else ''}is {', '.join(words)}"
    if len(concluded) > 1:
        return f"{reason}: the two bases disagree", None
    only = concluded.pop()
    return (f"{reason}, which includes zero", None) if only == "undecided" else (reason, sides[str(only)])
