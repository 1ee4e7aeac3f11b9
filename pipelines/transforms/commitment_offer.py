"""What an offer of a commitment rests on: on-demand usage, the prices of each kind, and the commitments in force."""

from datetime import timedelta

import polars as pl

from pipelines.transforms import Row, Rows

# What each kind covers (ref_commitment_eligibility), and whether it is bound to an instance family in a region.
KINDS: dict[str, tuple[tuple[str, ...], bool]] = {
    "compute_savings_plan": (("ec2_instance", "fargate", "lambda"), False),
    "ec2_instance_savings_plan": (("ec2_instance",), True),
    "sagemaker_savings_plan": (("sagemaker_instance",), False),
    "reserved_instance": (("ec2_instance",), True),
}
PAYER = ["payer_account_id", "billing_currency"]
_TERMS = ["purchase_term", "payment_option"]
_RATE = ["commitment_kind", *_TERMS, "region_id", "usage_type_key"]
# The instance family of a type.
FAMILY = pl.col("usage_type_key").str.strip_prefix("ml.").str.split(".").list.first()
_NO_OFFER = dict.fromkeys(("region_id", "instance_family", *_TERMS), "")


def since_hourly(demand: pl.DataFrame, by_day: pl.DataFrame) -> pl.DataFrame:
    """The usage with a history that begins after the `daily_month` of `by_day`: a day's sum shows no hours."""
    start, end = pl.col("daily_month").cast(pl.Datetime("us")).dt.offset_by("1mo"), pl.col("last_hour_at")
    first = pl.max_horizontal("first_hour_at", pl.when(start <= end).then(start).otherwise(end + timedelta(hours=1)))
    first = pl.when(start.is_null()).then("first_hour_at").otherwise(first)
    return demand.join(by_day, on=PAYER, how="left").with_columns(first_hour_at=first)


def on_demand_usage(use: pl.DataFrame, commitments: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """List price by hour, region and type of what ran on demand, and the part of it that was paid after negotiated
    discounts, null where unknown; an hour without a row had no usage.

    What a commitment covered that is not among `held`, those in force, would run on demand today: at the price that
    on-demand usage of its region and type had.
    """
    usage = [*PAYER, "hour_started_at", "region_id", "usage_type_key", "commitment_eligibility"]
    listed, paid = (pl.col(name).cast(pl.Float64) for name in ("list_cost_usd", "on_demand_cost_usd"))
    open_use = use.filter(commitment_kind="none").with_columns(list_cost_usd=listed, on_demand_ratio=paid / listed)
    each, kind = [*PAYER, "commitment_kind", "commitment_id"], [*PAYER, "region_id", "usage_type_key"]
    ended = commitments.filter(pl.col("commitment_cost_usd") > 0).join(held, on=each, how="anti")
    known = open_use.filter(pl.col("on_demand_ratio").is_not_null())
    ratios = known.group_by(kind).agg(on_demand_ratio=paid.sum() / listed.sum())
    released = use.filter(pl.col("hour_started_at").is_not_null()).join(ended, on=each, how="semi")
    released = released.with_columns(list_cost_usd=listed).join(ratios, on=kind, how="left")
    return pl.concat([open_use, released], how="diagonal").sort(usage)


def rates(use: pl.DataFrame, commitments: pl.DataFrame, declared: pl.DataFrame, reviewed: pl.DataFrame) -> pl.DataFrame:
    """Price over list price by payer, offer, region and type: the payer's own, the declared and the reviewed ones."""
    payers = use.select(PAYER).unique()
    terms = commitments.group_by(*PAYER, "commitment_id", "commitment_kind").agg(pl.col(*_TERMS).first())
    # Rounded as the SQL function `ratio` does.
    ratio = (pl.col("used_cost_usd") / pl.col("list_cost_usd") * 1e6 + 0.5).floor() / 1e6
    own = (
        use.filter("is_rated")
        .join(terms, on=[*PAYER, "commitment_id", "commitment_kind"], how="left")
        .with_columns(pl.col(_TERMS).fill_null(""))
        .group_by(*PAYER, *_RATE)
        .agg(pl.col("used_cost_usd", "list_cost_usd").sum().cast(pl.Float64))
        .with_columns(paid_ratio=ratio)
    )
    parts = [
        (own, "own bill"),
        (payers.join(declared, how="cross"), "declared"),
        (payers.join(reviewed.with_columns(region_id=pl.lit("")), how="cross"), "reviewed list"),
    ]
    columns = [*PAYER, *_RATE, "paid_ratio", "rate_basis"]
    listed = [
        part.with_columns(pl.col("paid_ratio").cast(pl.Float64).round(6), rate_basis=pl.lit(basis)).select(columns)
        for part, basis in parts
    ]
    return pl.concat(listed).filter(pl.col("paid_ratio").is_between(0, 1, closed="none")).sort(columns)


def in_force(commitments: pl.DataFrame, newest: pl.DataFrame) -> pl.DataFrame:
    """Commitments with a cost on their payer's newest day that do not end with it: their cost an hour and their end.

    `newest` has the payers' `newest_usage_at`. The cost an hour is that of the newest whole day: a commitment may begin
    within its first one, and the bill end within its last. It is null where the bill has no whole day of it.
    """
    each, day, midnight = [*PAYER, "commitment_kind", "commitment_id"], pl.col("usage_date"), pl.Datetime("us")
    at_midnight, cost = day.cast(midnight), pl.col("commitment_cost_usd")
    has_ended = at_midnight + timedelta(hours=23) <= pl.col("newest_usage_at")
    has_begun = pl.col("started_at") <= at_midnight
    whole = ((day < pl.col("newest_date")) | has_ended.fill_null(False)) & (
        (day > day.min().over(each)) | has_begun.fill_null(day == pl.col("oldest_date"))
    )
    is_in_force = (cost > 0) & (pl.col("ended_at") > at_midnight + timedelta(days=1)).fill_null(True)
    return (
        commitments.with_columns(
            newest_date=day.max().over(PAYER),
            oldest_date=day.min().over(PAYER),
            ended_at=pl.col("ended_at").max().over(each),
        )
        .join(newest.select(*PAYER, "newest_usage_at"), on=PAYER, how="left")
        # Fees may come a day or two after usage (facts aws-billing 2.4), no more.
        .with_columns(
            newest_date=pl.max_horizontal("newest_date", pl.col("newest_usage_at").dt.date() - timedelta(days=2))
        )
        .group_by(*each, "usage_date", "newest_date", "oldest_date", "newest_usage_at")
        .agg(cost.sum().cast(pl.Float64), pl.col("ended_at", "started_at").max())
        .with_columns(is_whole=whole, is_in_force=is_in_force & (day == pl.col("newest_date")))
        .sort(*each, "usage_date")
        .group_by(each, maintain_order=True)
        .agg(
            pl.col("ended_at").max(),
            pl.col("is_in_force").any(),
            commitment_per_hour_usd=(cost.filter("is_whole", cost > 0).last() / 24 * 100 + 0.5).floor() / 100,
        )
        .filter("is_in_force")
        .drop("is_in_force")
    )


def begun_within(commitments: pl.DataFrame, use: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Those of `held`, the commitments in force, that began after their payer's history did: terms, scope, start and
    cost of a whole hour.

    `per_hour_usd` is null where the bill has no whole day of it.
    """
    each, scope = [*PAYER, "commitment_kind", "commitment_id"], ["region_id", "instance_family"]
    day, midnight = pl.col("usage_date"), pl.Datetime("us")
    # A fee may begin within its first day, and the bill end within its last.
    whole = (day > day.min()) & (day < day.max())
    found = (
        commitments.filter(pl.col("commitment_cost_usd") > 0)
        .group_by(*each, "usage_date")
        .agg(pl.col("commitment_cost_usd").sum().cast(pl.Float64), pl.col(*_TERMS, *scope, "started_at").max())
        .group_by(each)
        .agg(
            pl.col(_TERMS).max().fill_null(""),
            pl.col(*scope, "started_at").max(),
            per_hour_usd=pl.col("commitment_cost_usd").filter(whole).max() / 24,
            first_date=day.min(),
        )
        .with_columns(began_at=pl.coalesce("started_at", pl.col("first_date").cast(midnight) + timedelta(days=1)))
        .join(use.group_by(each).agg(used_region=pl.col("region_id").max(), used_family=FAMILY.max()), each, "left")
        # A bill may lack the scope of a commitment: then it is that of what used it.
        .with_columns(
            region_id=pl.coalesce(scope[0], "used_region"), instance_family=pl.coalesce(scope[1], "used_family")
        )
    )
    history = use.group_by(PAYER).agg(pl.col("first_hour_at").min())
    begun = found.join(held, on=each, how="semi").join(history, on=PAYER).sort(each)
    return begun.filter(
        pl.col("first_date") > pl.col("first_hour_at").dt.date(), pl.col("commitment_kind").is_in(list(KINDS))
    )


def remaining_usage(usage: pl.DataFrame, begun: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """The on-demand usage of a payer that `begun`, had they been in force all along, would have left on demand.

    Reservations apply first, then plans of one family, then Compute plans, the largest discount first (facts
    aws-billing 3.2). `is_least` marks what remains at least, `is_unknown` usage of which the remainder is unknown.
    """
    for kind in reversed(KINDS):
        key = [*_TERMS, "region_id", "instance_family", "began_at"]
        per_hour = pl.col("per_hour_usd")
        limits = pl.when(per_hour.is_not_null().all()).then(per_hour.sum())
        for held in begun.filter(commitment_kind=kind).group_by(key).agg(limits).sort(key).to_dicts():
            terms = {name: held[name] for name in _TERMS}
            usage = _left_by(usage, kind, held, rates.filter(commitment_kind=kind, **terms))
    return usage


def _left_by(usage: pl.DataFrame, kind: str, held: Row, rates: pl.DataFrame) -> pl.DataFrame:
    eligible, is_bound = KINDS[kind]
    hour = pl.col("hour_started_at")
    is_covered = pl.col("commitment_eligibility").is_in(eligible) & (hour < held["began_at"])
    if is_bound:
        for name in ("region_id", "instance_family"):
            if held[name] is not None:
                is_covered &= pl.col(name) == held[name]
    part = _priced(usage.filter(is_covered), rates).sort("hour_started_at", "paid_ratio", maintain_order=True)
    need = pl.when(~pl.col("is_unknown")).then(pl.col("list_cost_usd") * pl.col("paid_ratio")).fill_null(0.0)
    # Rates are rounded to six places: what that leaves of a commitment is no usage.
    limit = pl.lit(held["per_hour_usd"], pl.Float64) * (1 + 1e-5)
    part = part.with_columns(need=need).with_columns(
        taken=(limit - (pl.col("need").cum_sum().over("hour_started_at") - pl.col("need"))).clip(0, pl.col("need"))
    )
    is_unknown = pl.col("is_unknown") | pl.col("paid_ratio").is_null() | pl.col("taken").is_null()
    is_least = pl.col("is_least") | is_unknown
    remaining = pl.col("list_cost_usd") * (1 - pl.col("taken") / pl.col("need"))
    part = part.with_columns(
        is_least=is_least,
        is_unknown=is_unknown,
        list_cost_usd=pl.when(~is_unknown & (pl.col("need") > 0)).then(remaining).otherwise("list_cost_usd"),
    )
    return pl.concat([usage.filter(~is_covered), part.select(usage.columns)])


def offers(usage: pl.DataFrame, rates: pl.DataFrame, is_bound: bool) -> Rows:
    """Each offer with the usage it may cover, priced; an empty one for what is bound to a scope without a known rate.

    Where no rate is known for any of the usage, one empty offer has all of it.
    """
    if usage.is_empty():
        return []
    scopes: Rows = [{"region_id": "", "instance_family": ""}]
    if is_bound:
        scopes = usage.select("region_id", "instance_family").unique(maintain_order=True).to_dicts()
    found, lacking = [], []
    for scope in scopes:
        part = usage.filter(**scope) if is_bound else usage
        count = len(found)
        for terms, offered in rates.group_by(_TERMS, maintain_order=True):
            priced = _priced(part, offered)
            if priced["paid_ratio"].is_not_null().any():
                found.append(scope | dict(zip(_TERMS, terms, strict=True)) | {"usage": priced})
        if len(found) == count and part["list_cost_usd"].sum() > 0:
            lacking.append(_NO_OFFER | scope | {"usage": _priced(part, rates.clear())})
    return found + lacking if found else [_NO_OFFER | {"usage": _priced(usage, rates.clear())}]


def _priced(usage: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """The usage with its rate: from the payer's own bill, else declared, else reviewed; its region before any."""
    columns = ["paid_ratio", "rate_basis"]
    priced = usage.with_columns(paid_ratio=pl.lit(None, pl.Float64), rate_basis=pl.lit(None, pl.String))
    for basis, key in (
        ("own bill", ["region_id", "usage_type_key"]),
        ("declared", ["region_id", "usage_type_key"]),
        ("declared", ["usage_type_key"]),
        ("reviewed list", ["usage_type_key"]),
    ):
        of_basis = rates.filter(rate_basis=basis)
        of_basis = of_basis if "region_id" in key else of_basis.filter(region_id="")
        priced = priced.join(of_basis.select(*key, *columns), on=key, how="left", suffix="_found").select(
            pl.exclude(*columns, *(f"{name}_found" for name in columns)),
            *(pl.coalesce(name, f"{name}_found").alias(name) for name in columns),
        )
    return priced
