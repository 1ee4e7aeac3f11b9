"""The settings of an export by one of its deliveries: granularity, resource ids, optional columns, tags, freshness."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pipelines.base.parse import parse_json
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.billing.columns import CUR, FOCUS, ColumnList, snake
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.select import TAG_NAMES, raw_select
from pipelines.ingest.billing.tags import FALLBACKS, lookups

# An export's setting, by the columns it adds (facts aws-billing 1.2).
SPLIT, CAPACITY, NET = "split cost data", "capacity data", "net costs"
ADDED = {SPLIT: "split_line_item_", CAPACITY: "capacity_reservation_", NET: "line_item_net_unblended_cost"}


# The columns of a family of exports. Fees are dated into the future (facts 2.4), so only use has hours.
_NAMES: dict[ColumnList, dict[str, str]] = {
    CUR: {
        "used": "line_item_line_item_type in ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage')",
        "start": "line_item_usage_start_date",
        "end": "line_item_usage_end_date",
        "resource": "line_item_resource_id",
        "payer": "bill_payer_account_id",
        "currency": "line_item_currency_code",
        "net": "line_item_net_unblended_cost",
    },
    FOCUS: {
        "used": "charge_category = 'Usage'",
        "start": "charge_period_start",
        "end": "charge_period_end",
        "resource": "resource_id",
        "payer": "billing_account_id",
        "currency": "billing_currency",
        # Costs of FOCUS are after discounts.
        "net": "null",
    },
}


@dataclass(frozen=True)
class TagUse:
    """How one of our tags is found in a bill: the delivered keys that stand for it, and the cost they cover."""

    name: str
    keys: tuple[str, ...]
    covered: dict[str, Decimal]


@dataclass(frozen=True)
class TagKeyCost:
    """A tag key of a bill as it was written, how many values it has, and the cost that carries it, by currency."""

    key: str
    value_count: int
    cost: dict[str, Decimal]


@dataclass(frozen=True)
class Seen:
    """The lines of a delivery in figures. Costs are as on the bill, by currency: of all lines, and of usage lines.

    `granularity` is None where nothing was used; `columns` are the optional ones that are there; `has_net`: any
    net cost is filled.
    """

    payers: frozenset[str]
    billed_cost: dict[str, Decimal]
    used_count: int
    resource_count: int
    granularity: str | None
    newest_usage_at: datetime | None
    columns: frozenset[str]
    has_net: bool
    used_cost: dict[str, Decimal]
    tags: tuple[TagUse, ...]


def see(raw: RawDelivery, tags: Mapping[str, Sequence[str]], now: datetime) -> Seen:
    """Look through a stored delivery; `now` is naive UTC, and nothing dated after it counts as used."""
    listed = raw.delivery.listed
    names, billed = _NAMES[listed], listed.billed
    used, payer = names["used"], names["payer"]
    lasts = f"date_diff('second', {names['start']}, {names['end']})"
    tagged = ", ".join(f"sum({billed}) filter (where {used} and tag_{name} is not null)" for name in TAG_NAMES)
    upto = f"timestamp '{now:%Y-%m-%d %H:%M:%S}'"
    with _lines_of(raw, tags) as engine:
        by_currency = engine.query(
            f"select {names['currency']}, sum({billed}), count({names['net']}), "
            f"list(distinct {payer}) filter (where {payer} is not null), count(*) filter (where {used}), "
            f"sum({billed}) filter (where {used}), {tagged} from line group by 1 order by 1"
        ).rows()
        # Storage of an hourly export still comes by the day; of a daily one nothing is as short as an hour.
        (counts,) = engine.query(
            f"select count(*) as used_count, count({names['resource']}) as resource_count, "
            "case when count(*) = 0 then null "
            f"when count(*) filter (where {lasts} <= 3600) * 100 >= count(*) then 'hourly' "
            f"when count(*) filter (where {lasts} <= 86400) * 100 >= count(*) then 'daily' else 'monthly' end "
            f"as granularity, max({names['start']}) filter (where {names['start']} <= {upto}) as newest_usage_at "
            f"from line where {used}"
        ).to_dicts()
    money = [(currency, *sums) for currency, _, _, _, count, *sums in by_currency if count]
    columns = {snake(column.name) for file in raw.files for column in file.columns if column.form != "null"}
    keys = {
        name: dict.fromkeys(
            tag.key for file in raw.files for tag in lookups(file.tag_keys, tags.get(name, ()), FALLBACKS[name])
        )
        for name in TAG_NAMES
    }
    return Seen(
        payers=frozenset(payer for row in by_currency for payer in row[3] or ()),
        billed_cost={row[0]: row[1] for row in by_currency},
        **counts,
        columns=frozenset(option for option, start in ADDED.items() if any(n.startswith(start) for n in columns)),
        has_net=any(row[2] for row in by_currency),
        used_cost={row[0]: row[1] for row in money},
        tags=tuple(
            TagUse(name, tuple(keys[name]), {row[0]: row[2 + at] or Decimal(0) for row in money})
            for at, name in enumerate(TAG_NAMES)
        ),
    )


def tag_costs(raw: RawDelivery) -> list[TagKeyCost]:
    """Every tag key of a stored delivery that has a value, the most billed cost first."""
    listed = raw.delivery.listed
    with _lines_of(raw, {}) as engine:
        rows = engine.query(
            f"select tag_json, {_NAMES[listed]['currency']}, sum({listed.billed}) from line "
            "where tag_json is not null group by 1, 2"
        ).rows()
    values: dict[str, set[str]] = defaultdict(set)
    costs: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for tags, currency_code, cost in rows:
        for key, value in parse_json(tags).items():
            values[key].add(value)
            costs[key][currency_code] += cost
    found = [TagKeyCost(key, len(values[key]), cost) for key, cost in costs.items()]
    return sorted(found, key=lambda one: (-sum(one.cost.values()), one.key))


@contextmanager
def _lines_of(raw: RawDelivery, tags: Mapping[str, Sequence[str]]) -> Iterator[DuckDBEngine]:
    """An engine with the view `line`, the lines of a stored delivery."""
    select = raw_select([raw], tags, raw.delivery.listed)
    with DuckDBEngine() as engine:
        for view, files in select.views.items():
            engine.scan_files(view, files)
        engine.view_sql("line", select.sql)
        yield engine
