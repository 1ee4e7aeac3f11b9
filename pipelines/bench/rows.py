"""Millions of bill lines at once: arrays of numbers that become a table by way of line templates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pipelines.bench.catalog import Templates
from pipelines.demo.columns import MAP, SCHEMA
from pipelines.demo.lines import month_start
from pipelines.demo.scenario import Account

HOUR_MS = 3_600_000
_HEX_PAIRS = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


@dataclass
class Resources:
    """What lines point to, by number: resource 0 is none, tag set 0 is empty."""

    accounts: list[Account]
    ids: list[str] = field(default_factory=lambda: [""])
    account: list[int] = field(default_factory=lambda: [0])
    tag_set: list[int] = field(default_factory=lambda: [0])
    tag_sets: list[dict[str, str]] = field(default_factory=lambda: [{}])

    def add(self, ids: list[str], account: list[int], tag_set: list[int]) -> np.ndarray:
        """Numbers of the added resources."""
        first = len(self.ids)
        self.ids += ids
        self.account += account
        self.tag_set += tag_set
        return np.arange(first, len(self.ids), dtype=np.int32)


@dataclass(frozen=True)
class Rows:
    """Lines in the making: template, resource and hour of the month by number, amount, cost in USD."""

    template: np.ndarray
    resource: np.ndarray
    hour: np.ndarray
    amount: np.ndarray
    cost: np.ndarray

    def __len__(self) -> int:
        return len(self.template)


def priced(
    templates: Templates, template: np.ndarray, resource: np.ndarray, hour: np.ndarray, amount: np.ndarray
) -> Rows:
    """Lines at the rate of their template."""
    amount = np.round(amount, 10)
    cost = np.round(amount * templates.rate[template], 10)
    return Rows(template.astype(np.int32), resource.astype(np.int32), hour.astype(np.int32), amount, cost)


def joined(parts: list[Rows]) -> Rows:
    columns = ("template", "resource", "hour", "amount", "cost")
    return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def bill_table(templates: Templates, resources: Resources, lines: Rows, month: str, execution: int) -> pa.Table:
    """The lines as a table of the export's columns; text columns are dictionaries of few values."""
    own = _own_columns(templates, resources, lines, month, execution)
    take = pa.array(lines.template)
    columns = []
    for column in SCHEMA:
        if column.name in own:
            columns.append(own[column.name])
            continue
        values = templates.table.column(column.name).combine_chunks()
        if values.null_count == len(values):
            columns.append(pa.nulls(len(lines), column.type))
        elif column.type == pa.string():
            columns.append(values.dictionary_encode().take(take))
        elif column.type == MAP:
            columns.append(_coded_map(values.fill_null([])).take(take))
        else:
            columns.append(values.take(take))
    return pa.Table.from_arrays(columns, names=SCHEMA.names)


def _own_columns(
    templates: Templates, resources: Resources, lines: Rows, month: str, execution: int
) -> dict[str, pa.Array]:
    """The columns a template cannot give: who, when, how much."""
    started_ms = int(np.datetime64(month_start(month), "ms").astype(np.int64)) + lines.hour.astype(np.int64) * HOUR_MS
    account = np.array(resources.account, dtype=np.int32)[lines.resource]
    tag_set = pa.array(np.array(resources.tag_set, dtype=np.int32)[lines.resource])
    tag_sets = pa.array([list(tags.items()) for tags in resources.tag_sets], MAP)
    committed = np.round(lines.amount * templates.commitment_rate[lines.template], 10)
    is_covered = np.isin(lines.template, list(templates.covered.values()))
    is_reserved = np.isin(lines.template, list(templates.reserved.values()))
    is_fee = lines.template == templates.plan_fee
    is_reservation_fee = lines.template == templates.reservation_fee
    used = np.round(np.bincount(lines.hour[is_covered], committed[is_covered], lines.hour.max() + 1), 10)
    zero = np.zeros(len(lines))
    return {
        "identity_line_item_id": _identities(execution, len(lines)),
        "identity_time_interval": _intervals(lines.hour, month),
        "line_item_usage_account_id": _coded(account, [one.id for one in resources.accounts]),
        "line_item_usage_account_name": _coded(account, [one.name for one in resources.accounts]),
        "line_item_resource_id": _coded(lines.resource, resources.ids),
        "resource_tags": _coded_map(tag_sets).take(tag_set),
        "line_item_usage_start_date": pa.array(started_ms.astype("datetime64[ms]")),
        "line_item_usage_end_date": pa.array((started_ms + HOUR_MS).astype("datetime64[ms]")),
        "line_item_usage_amount": pa.array(lines.amount),
        "line_item_unblended_cost": pa.array(lines.cost),
        "pricing_public_on_demand_cost": pa.array(np.round(lines.amount * templates.list_rate[lines.template], 10)),
        "savings_plan_savings_plan_effective_cost": pa.array(committed, mask=~is_covered),
        "savings_plan_used_commitment": pa.array(used[lines.hour], mask=~is_fee),
        "savings_plan_total_commitment_to_date": pa.array(lines.cost, mask=~is_fee),
        "savings_plan_recurring_commitment_for_billing_period": pa.array(lines.cost, mask=~is_fee),
        "savings_plan_amortized_upfront_commitment_for_billing_period": pa.array(zero, mask=~is_fee),
        "reservation_effective_cost": pa.array(committed, mask=~is_reserved),
        "reservation_unused_recurring_fee": pa.array(zero, mask=~is_reservation_fee),
        "reservation_unused_amortized_upfront_fee_for_billing_period": pa.array(zero, mask=~is_reservation_fee),
        "reservation_amortized_upfront_fee_for_billing_period": pa.array(zero, mask=~is_reservation_fee),
    }


def _coded(codes: np.ndarray, values: list[str]) -> pa.Array:
    # Decoded, for an array of codes was written as other bytes each time.
    coded = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values, pa.string()))
    return coded.dictionary_decode()


def _intervals(hour: np.ndarray, month: str) -> pa.Array:
    start = np.datetime64(month_start(month), "h")
    names = [f"{start + number}:00:00Z/{start + number + 1}:00:00Z" for number in range(int(hour.max()) + 1)]
    return _coded(hour, names)


def _identities(execution: int, count: int) -> pa.Array:
    """Line ids, 16 hexadecimal digits, unique in a delivery."""
    number = (execution << 40) + np.arange(count, dtype=np.uint64)
    digits = _HEX_PAIRS[number.astype(">u8").view(np.uint8)]
    offsets = np.arange(0, 16 * (count + 1), 16, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits))


def _coded_map(maps: pa.MapArray) -> pa.MapArray:
    """The same maps with keys and values as dictionaries, which are taken and written much faster."""
    return pa.MapArray.from_arrays(maps.offsets, maps.keys.dictionary_encode(), maps.items.dictionary_encode())
