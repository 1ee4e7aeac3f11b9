"""The ways in which each model is served, as the bill and the metrics of its servers show them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import polars as pl

from pipelines.analysis.crossover import KINDS
from pipelines.transforms import Frames, Row
from pipelines.transforms.price_book import Prices, price_on

INPUTS = (
    "detail_serving_capacity_hourly", "detail_bedrock_usage_daily", "mart_inference_cost_daily", "stg_serving__traffic",
    "fct_invoice_monthly", "ref_instance_type",
)  # fmt: skip
BASES = ("effective", "list")
BEDROCK = "bedrock"
# Traffic counts over so many days before the newest use of any line of the payer.
WINDOW_DAYS = 90
_COUNTED = tuple(f"{kind}_tokens" for kind in KINDS)
_COUNTS = pl.col(*_COUNTED).cast(pl.Float64).fill_null(0)
_COSTS = tuple(f"{basis}_cost_usd" for basis in BASES)


@dataclass(frozen=True)
class Side:
    """One way to serve a model. `days` has a row a day of the bill from the first use on: tokens by kind, and costs by
    basis, null where unknown and 0 on a day without use.

    `is_capacity` where it is paid by the hour: servers, and capacity of Bedrock (`tier`), whose tokens no bill shows.
    Days up to `changed_on` are left out, for a list price has changed since.
    `uncounted` is what else the bill of these days has of it, images for one: then its costs are unknown.
    Throughputs are tokens of all kinds a second. `peak` is that of the busiest hour or day known; where more than a
    hundredth of the tokens or hours is not recorded, another may be busier (`is_peak_measured`). `capacity` is what a
    server serves while its latency targets hold: `targets` has those of its servers, to the first token and between
    tokens. `has_part` where a server has a part of its machine.
    """

    model: str
    currency: str
    platform: str
    family: str
    region_id: str | None
    days: pl.DataFrame
    unmeasured_days: int
    peak: float
    is_peak_measured: bool
    is_capacity: bool
    instance_type: str | None = None
    precision: str | None = None
    capacity: float | None = None
    up_seconds: float = 0.0
    tier: str | None = None
    uncounted: str | None = None
    changed_on: date | None = None
    targets: Sequence[tuple[float, ...]] = ()
    has_part: bool = False

    @property
    def tokens(self) -> dict[str, float]:
        return {kind: float(self.days[f"{kind}_tokens"].sum()) for kind in KINDS}

    @property
    def output_ratio(self) -> float | None:
        """Output tokens in all tokens; None without tokens."""
        whole = sum(self.tokens.values())
        return self.tokens["output"] / whole if whole else None

    @property
    def dates(self) -> list[date]:
        return self.days["usage_date"].to_list()

    @property
    def is_used(self) -> list[bool]:
        """Whether a day has traffic."""
        return self.days.select(pl.sum_horizontal(_COUNTED) > 0).to_series().to_list()

    def costs(self, basis: str) -> list[float] | None:
        """USD of each day; None where one is unknown."""
        costs = self.days[f"{basis}_cost_usd"]
        return None if self.uncounted or costs.null_count() else costs.cast(pl.Float64).to_list()

    def prices(self, basis: str, is_anew: bool = False) -> dict[str, float | None]:
        """USD per million tokens of each kind, of tokens that the bill prices; a price of zero is unknown.

        Tokens of all tiers as they were used; traffic that comes anew (`is_anew`) pays the price of the standard tier
        where the bill has it (facts serving V3).
        """
        found: dict[str, float | None] = {}
        for kind in KINDS:
            part = f"{kind}_standard" if is_anew and self.days[f"{kind}_standard_tokens"].sum() else kind
            tokens, spent = float(self.days[f"{part}_tokens"].sum()), self.days[f"{part}_{basis}_usd"]
            is_known = self.tokens[kind] and tokens and not spent.null_count()
            found[kind] = float(spent.sum()) * 1e6 / tokens or None if is_known else None
        return found


def sides_of(table: Frames, prices: Prices) -> list[Side]:
    """Every way in which a model was served in the newest WINDOW_DAYS; `table` has the frames of INPUTS."""
    bill, calls = table["fct_invoice_monthly"], table["stg_serving__traffic"]
    sides = [
        *_servers(table["detail_serving_capacity_hourly"], bill, prices),
        *_managed(table["detail_bedrock_usage_daily"], bill, calls),
        *_reserved(table["mart_inference_cost_daily"], table["detail_bedrock_usage_daily"], bill, calls),
    ]
    return sorted(
        sides, key=lambda one: (one.model, one.currency, one.platform, one.instance_type or "", one.tier or "")
    )


def _used(frame: pl.DataFrame, bill: pl.DataFrame, *key: str) -> Iterator[tuple[Any, pl.DataFrame, list[date]]]:
    """Each way's rows in the newest WINDOW_DAYS of its payers' bill since a list price last changed, and the delivered
    days since the first."""
    for values, every in frame.drop_nulls("model").group_by(key, maintain_order=True):
        own = bill.join(every, ["payer_account_id", "billing_currency"], "semi")
        newest: Any = max(own["newest_date"].drop_nulls().append(every["usage_date"]))
        recent = every.filter(pl.col("usage_date") > newest - timedelta(days=WINDOW_DAYS))
        if not recent.is_empty():
            changed_on = _changed_on(recent)
            first: Any = recent["usage_date"].min()
            if changed_on:
                first = changed_on + timedelta(days=1)
                recent = recent.filter(pl.col("usage_date") >= first)
            recent = recent.with_columns(changed_on=pl.lit(changed_on, pl.Date))
            days = pl.date_range(first, newest, eager=True)
            yield values, recent, [day for day in days if day.replace(day=1) in set(own["billing_month"])]


def _changed_on(rows: pl.DataFrame) -> date | None:
    """The newest day at a list price that is not the newest one, by over a hundredth: less is rounding."""
    if "unit_usd" not in rows.columns:
        return None
    daily = rows.filter(pl.col("unit_usd") > 0).group_by("priced", "usage_date").agg(pl.col("unit_usd").max())
    newest = pl.col("unit_usd").sort_by("usage_date").last().over("priced")
    changed: Any = daily.filter((pl.col("unit_usd") / newest - 1).abs() > 0.01)["usage_date"].max()
    return changed


def _days(own: pl.DataFrame, billed: Sequence[date], *sums: pl.Expr) -> Row:
    """The days whose tokens are all known, and how many are not; without a known one, all of them for their costs.

    A day's cost is unknown where a part of it is. Of the `billed` days without use as large a part counts as of those
    with use.
    """
    costs = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name) for name in _COSTS]
    days = own.group_by("usage_date").agg(*sums, *costs).sort("usage_date")
    measured = days.filter("is_measured")
    if measured.is_empty():
        measured = days.with_columns(pl.lit(0.0).alias(name) for name in _COUNTED)
    known, used = measured.height, days.height
    unused = [day for day in billed if day not in set(days["usage_date"])]
    counted = [day for no, day in enumerate(unused) if (no + 1) * known // used > no * known // used]
    nothing = pl.DataFrame({"usage_date": counted}, {"usage_date": pl.Date}).with_columns(
        pl.lit(0).cast(kind).alias(name) for name, kind in measured.schema.items() if name != "usage_date"
    )
    # The region that most of the cost is of.
    by = own.group_by("region_id").agg(pl.col("effective_cost_usd").sum()).sort("effective_cost_usd", "region_id")
    region = by["region_id"][-1] if by.height else None
    every = pl.concat([measured, nothing], how="diagonal").sort("usage_date")
    return {"days": every, "unmeasured_days": used - known, "region_id": region, "changed_on": own["changed_on"][0]}


def _servers(hours: pl.DataFrame, bill: pl.DataFrame, prices: Prices) -> Iterator[Side]:
    key = ("model", "billing_currency", "platform", "accelerator_family", "instance_type")
    listed = [price_on(prices, row, row["usage_date"]) for row in hours.iter_rows(named=True)]
    priced = hours.with_columns(priced="region_id", unit_usd=pl.Series(listed, dtype=pl.Float64))
    for values, recent, billed in _used(priced, bill, *key):
        model, currency, platform, family, instance_type = values
        own = recent.with_columns(_COUNTS)
        tokens = own.group_by("hour_started_at").agg(pl.sum_horizontal(pl.col(*_COUNTED).sum()).alias("tokens"))
        found = _days(own, billed, pl.col(*_COUNTED, "up_seconds").sum(), pl.col("is_measured").fill_null(True).all())
        sums = {name: float(found["days"][name].sum()) for name in (*_COUNTED, "up_seconds")}
        # What serves now: the newest hour's servers, if all have one.
        newest = own.filter(pl.col("hour_started_at") == pl.col("hour_started_at").max())["capacity_tokens_per_second"]
        most: Any = newest[0] if newest.n_unique() == 1 else None
        output, whole = sums["output_tokens"], sum(sums[name] for name in _COUNTED)
        precisions = own["precision"].unique()
        yield Side(
            *(str(value) for value in (model, currency, platform)),
            **found,
            family=str(family or "cpu"),
            instance_type=instance_type and str(instance_type),
            precision=precisions[0] if len(precisions) == 1 else None,
            peak=float(tokens["tokens"].max() or 0) / 3600,  # type: ignore[arg-type]
            is_peak_measured=float(own["is_measured"].fill_null(True).mean() or 0) >= 0.99,  # type: ignore[arg-type]
            is_capacity=True,
            # A throughput counts output where there is any.
            capacity=float(most) * (whole / output if output else 1) if most else None,
            up_seconds=sums["up_seconds"],
            targets=own.select("ttft_target_seconds", "itl_target_seconds").unique().rows(),
            has_part=bool(own["has_part"].any()),
        )


def _managed(usage: pl.DataFrame, bill: pl.DataFrame, calls: pl.DataFrame) -> Iterator[Side]:
    """Tokens of Bedrock; `calls` has the tokens of each model and hour that a log shows."""
    unit_usd = pl.col("list_cost_usd").cast(pl.Float64) / pl.col("million_tokens").cast(pl.Float64)
    counted = usage.filter(pl.col("token_kind").is_in(KINDS))
    known = counted.with_columns(priced="usage_type", unit_usd=pl.when(pl.col("million_tokens") > 0).then(unit_usd))
    for (model, currency), recent, billed in _used(known, bill, "model", "billing_currency"):
        own = recent.with_columns(tokens=pl.col("million_tokens").cast(pl.Float64) * 1e6)
        sums = [(pl.col("tokens").null_count() == 0).alias("is_measured")]
        for kind in KINDS:
            is_kind = pl.col("token_kind") == kind
            for part, is_part in ((kind, is_kind), (f"{kind}_standard", is_kind & (pl.col("tier") == "standard"))):
                sums.append(pl.col("tokens").filter(is_part).sum().alias(f"{part}_tokens"))
                for basis in BASES:
                    cost = pl.col(f"{basis}_cost_usd").filter(is_part)
                    spent = pl.when(cost.null_count() == 0).then(cost.cast(pl.Float64).sum())
                    sums.append(spent.alias(f"{part}_{basis}_usd"))
        found = _days(own, billed, *sums) | {"uncounted": _uncounted(usage, model, currency, billed)}
        yield _of_bedrock(model, currency, found, calls, billed)


def _uncounted(usage: pl.DataFrame, model: Any, currency: Any, billed: Sequence[date]) -> str | None:
    """What the bill of these days has of the model in other kinds than KINDS, in words; None where it has nothing."""
    of_model = usage.filter(pl.col("usage_date").is_in(billed), model=model, billing_currency=currency)
    other = of_model.filter(~pl.col("token_kind").is_in(KINDS), pl.any_horizontal(pl.col(*_COSTS).fill_null(1) != 0))
    if other.is_empty():
        return None
    costs = other["effective_cost_usd"]
    usd = f"an unknown sum of {currency}" if costs.null_count() else f"{float(costs.sum()):,.2f} {currency}"
    kinds = ", ".join(sorted(set(other["token_kind"])))
    return f"{usd} on the bill for {model} is for what is not counted as tokens: {kinds}"


def _reserved(paid: pl.DataFrame, usage: pl.DataFrame, bill: pl.DataFrame, calls: pl.DataFrame) -> Iterator[Side]:
    """Capacity of Bedrock, with the tokens of its calls where they are known."""
    # Tokens, images and storage are no hours; an unknown usage type may be of them.
    unknown = usage.filter(token_kind="unknown")
    for (model, currency, tier), recent, billed in _used(paid, bill, "model", "billing_currency", "tier"):
        found = _days(recent.with_columns(_COUNTS), billed, pl.col(*_COUNTED).sum(), pl.col("is_measured").all())
        found |= {"uncounted": _uncounted(unknown, model, currency, billed)}
        yield _of_bedrock(model, currency, found, calls, billed, str(tier))


def _of_bedrock(
    model: Any, currency: Any, found: Row, calls: pl.DataFrame, billed: Sequence[date], tier: str | None = None
) -> Side:
    is_capacity = tier is not None
    own = calls.filter(pl.col("hour_started_at").dt.date().is_in(billed), model=model, is_capacity=is_capacity)
    hourly = own["tokens"].cast(pl.Float64)
    daily = found["days"].select(pl.sum_horizontal(_COUNTED)).to_series()
    # A log of one account or region among several, or of some days, need not have the busiest hour.
    is_measured = not hourly.is_empty() and hourly.sum() >= 0.99 * float(daily.sum())
    about = {"is_peak_measured": is_measured, "is_capacity": is_capacity, "tier": tier}
    about |= {"peak": max(float(daily.max() or 0) / 86400, float(hourly.max() or 0) / 3600)}  # type: ignore[arg-type]
    return Side(str(model), str(currency), BEDROCK, BEDROCK, **found, **about)
