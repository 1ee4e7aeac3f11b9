"""An explanation as people read it: amounts rounded to cents, the largest rows of each level."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from pipelines.base.errors import counted
from pipelines.explain.lines import BY_CHARGE_TYPE, Explanation, known_sum
from pipelines.explain.query import BASES, RECONCILIATION, Level
from pipelines.explain.terminal import Label, cents, moment
from pipelines.present.buckets import BUCKETS

# As the options of the command call them.
_HEADS = {
    "account_id": "account",
    "accelerator_family": "family",
    "billed_by": "billed by",
    "billing_entity": "seller",
    "charge_category": "category",
    "instance_type": "instance",
    "invoice_id": "invoice",
    "resource_id": "resource",
    "served_by": "served by",
    "usage_date": "day",
    "usage_type": "usage type",
}


Part = dict[str, Any]
"""A sentence, a table or a list, by its `kind`; of a table, the first `names` columns are not amounts."""


def parts(explanation: Explanation, limit: int) -> Iterator[Part]:
    """Every level for a terminal or a page: at most `limit` rows of each, and the sum of the others."""
    question, published = explanation.question, explanation.publication
    yield _sentence(
        f"{question.title}: {question.mart} of publication {published.number}, {moment(published.published_at)} UTC",
        is_detail=False,
    )
    for made in explanation.deliveries:
        yield _sentence(f"bill of {made['source']}, {made['billing_period']}: delivery {made['delivery_id']}")
    yield _mart(explanation, limit)
    if question.note:
        yield _sentence(question.note, is_detail=False)
    if question.mart == RECONCILIATION:
        yield from _charge_types(explanation)
    yield from (_level(explanation, level, limit) for level in question.levels if level.title)
    yield from _lines(explanation, limit)


def _sentence(text: str, *, is_detail: bool = True) -> Part:
    return {"kind": "sentence", "text": text, "is_detail": is_detail}


def _table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int, notes: Sequence[str] = ()
) -> Part:
    """Rows under a head, the last `numbers` columns amounts; `notes` belong to the first rows, one each."""
    lines = [{"cells": row, "note": note} for row, note in zip_longest(rows, notes, fillvalue="")]
    return {"kind": "table", "title": title, "head": head, "rows": lines, "names": len(head) - numbers}


def _list(title: str, entries: Sequence[str]) -> Part:
    return {"kind": "list", "title": title, "entries": entries}


def _mart(explanation: Explanation, limit: int) -> Part:
    question = explanation.question
    known = (*BASES, "idle_cost_usd", "ledger_cost_usd", "difference_usd")
    amounts = [name for name in known if name in question.rows.columns]
    unit = explanation.currency
    by, shared = _varying(question.rows, question.shown)
    head = (*map(_head, by), *(_unit(name, unit) for name in amounts))
    chosen = _together(question.rows, by, amounts)
    rows = [(*map(moment, row[: len(by)]), *map(cents, row[len(by) :])) for row in chosen.head(limit).rows()]
    if chosen.height > 1:
        if chosen.height > limit:
            rest = chosen.slice(limit)
            rows.append(_summed(f"and {rest.height} more", len(by), rest, amounts))
        rows.append(_summed("total", len(by), chosen, amounts))
    days = "" if chosen.height == question.rows.height else ", the sum of its rows"
    return _table(f"{question.mart}, as published{days}{shared}", head, rows, len(amounts))


def _level(explanation: Explanation, level: Level, limit: int) -> Part:
    summed = explanation.level(level)
    by, shared = _varying(summed, level.by)
    head = (*map(_head, by), f"{_called(explanation.total())}s", *_units(explanation))
    chosen = summed.select(*by, "piece_count", *BASES)
    rows = [
        (*_named(map(moment, row[:-4])), f"{row[-4]:,}", *map(cents, row[-3:])) for row in chosen.head(limit).rows()
    ]
    if chosen.height > limit:
        rest = chosen.slice(limit)
        rows.append(_summed(f"and {rest.height} more", len(by), rest, BASES, f"{rest['piece_count'].sum():,}"))
    if chosen.height > 1:
        rows.append(_summed("total", len(by), chosen, BASES, f"{chosen['piece_count'].sum():,}"))
    return _table(level.title + shared, head, rows, 1 + len(BASES))


def _named(cells: Iterable[str]) -> Sequence[str]:
    """The names of a row; discounts and taxes name neither a resource nor a usage type."""
    names = list(cells)
    return names if any(names) else ["none named", *names[1:]]


def _together(rows: pl.DataFrame, by: Sequence[str], amounts: Sequence[str]) -> pl.DataFrame:
    """Equal rows as one, the most expensive first; an amount is unknown where any part is."""
    sums = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name) for name in amounts]
    found = rows.group_by(*by, maintain_order=True).agg(sums)
    if found.height == rows.height:
        return found
    most_expensive = pl.col("effective_cost_usd" if "effective_cost_usd" in amounts else amounts[0]).abs()
    return found.sort(most_expensive, descending=True, nulls_last=True)


def _varying(rows: pl.DataFrame, names: Sequence[str]) -> tuple[list[str], str]:
    """The columns that differ between rows, at least one; and the values that all rows share, as text."""
    same = [name for name in names if rows.height > 1 and rows[name].n_unique() == 1]
    if len(same) == len(names):
        same = same[1:]
    shared = [f"{_head(name)} {moment(rows[name][0])}" for name in same if rows[name][0] not in (None, "")]
    return [name for name in names if name not in same], "".join(f"; {value}" for value in shared)


def _head(name: str) -> str:
    return _HEADS.get(name, name)


def _charge_types(explanation: Explanation) -> Iterator[Part]:
    unit, types = explanation.currency, explanation.by_charge_type()
    rows: list[tuple[str, ...]] = [(str(r[0]), f"{r[1]:,}", *map(cents, r[2:])) for r in types.rows()]
    head = ("charge type", "lines", f"billed {unit}", f"ledger {unit}", f"difference {unit}")
    amounts = ("billed_cost_usd", "ledger_cost_usd", "difference_usd")
    rows.append(_summed("total", 1, types, amounts, f"{types['line_count'].sum():,}"))
    yield _table(BY_CHARGE_TYPE, head, rows, 4)
    apart = types.filter(pl.col("difference_usd") != 0)
    if apart.height and known_sum(apart["difference_usd"]) == 0:
        # Such as usage under a Savings Plan, billed on demand, and its negation.
        types_apart = " and ".join(map(str, apart["charge_type"]))
        yield _sentence(f"The differences of {types_apart} cancel: the bill adds the amount and subtracts it again.")


def _lines(explanation: Explanation, limit: int) -> Iterator[Part]:
    question, total, lines = explanation.question, explanation.total(), explanation.lines(limit)
    count, called = total["piece_count"], _called(total)
    of_lines = lines.filter(pl.col("source_row").is_not_null())
    files = {key: at for at, key in enumerate(dict.fromkeys(map(_file, of_lines.rows(named=True))), start=1)}
    head = ("hour, UTC", "resource", *_units(explanation))
    rows, notes = [], []
    for line in lines.rows(named=True):
        used = str(line["resource_id"] or line["usage_type"] or "")
        rows.append((_when(line), used, *(cents(line[basis]) for basis in BASES)))
        is_line = line["source_row"] is not None
        row = f"; file {files[_file(line)]} row {line['source_row']}" if is_line else ""
        notes.append((f"{line['charge_type']}; " if is_line else "") + f"{line['share_rule']}{row}")
    shown = len(rows)
    if count > shown:
        label = Label(f"and {counted(count - shown, f'more {called}')}")
        rest = explanation.rest(shown)
        rows.append((label, "", *(cents(rest[basis]) for basis in BASES)))
    if count > 1:
        rows.append((Label(f"all {_all_of(total)}"), "", *(cents(total[basis]) for basis in BASES)))
    basis = question.largest.removesuffix("_cost_usd")
    if not count:
        yield _list("No bill lines found.", [])
        stays = [tuple(map(moment, row)) for row in explanation.stays().rows()]
        if stays:
            yield _table("Machines that the run recorded", ("resource", "instance", "from, UTC", "to, UTC"), stays, 0)
        return
    title = "Bill lines" if called == "line" else "Pieces of bill lines"
    yield _table(f"{title}, the largest first by {basis} cost", head, rows, len(BASES), notes)
    kinds = explanation.distinct("charge_type", "cost_rule_meaning")
    rules = [f"{kind}: {meaning}" for kind, meaning in kinds if kind is not None]
    yield _list("How each charge type counts as effective cost", rules)
    found = {bucket for (bucket,) in explanation.distinct("bucket")}
    yield _list("Buckets", [f"{bucket}: {meaning}" for bucket, meaning in BUCKETS.items() if bucket in found])
    if files:
        names = [f"{at}: {name} ({source}, delivery {made})" for (source, made, name), at in files.items()]
        yield _list("Files (rows count from 0)", names)


def agreed(explanation: Explanation) -> str:
    """The sentence that confirms the checked sums."""
    question = explanation.question
    bases = ", ".join(basis.removesuffix("_cost_usd") for basis in question.sums or BASES)
    lines = _all_of(explanation.total())
    # A run in several currencies has no cost there.
    mart = f"{question.mart}, " if question.sums else ""
    return f"The sums agree to the last digit at every level: {mart}{question.compared} and {lines} ({bases})."


def _units(explanation: Explanation) -> tuple[str, ...]:
    return tuple(_unit(basis, explanation.currency) for basis in BASES)


def _unit(name: str, unit: str) -> str:
    return f"{name.removesuffix('_usd').removesuffix('_cost')} {unit}"


def _summed(label: str, keys: int, rows: pl.DataFrame, amounts: Sequence[str], *between: str) -> tuple[str, ...]:
    return (Label(label), *[""] * (keys - 1), *between, *(cents(known_sum(rows[a])) for a in amounts))


def _called(total: dict[str, Any]) -> str:
    """Whether the rows are whole bill lines or pieces of them."""
    return "line" if total["piece_count"] == total["line_count"] else "piece"


def _all_of(total: dict[str, Any]) -> str:
    lines = counted(total["line_count"], "line")
    return lines if _called(total) == "line" else f"{counted(total['piece_count'], 'piece')} of {lines}"


def _when(line: dict[str, Any]) -> str:
    start, end = line["hour_started_at"], line["usage_ended_at"]
    # A line of a day or a month has no hour to show.
    lasts_longer = end is not None and start is not None and (end - start).total_seconds() > 3600
    return moment(line["usage_date"] if lasts_longer and line["hour_no"] == 0 else start)


def _file(line: dict[str, Any]) -> tuple[str, ...]:
    return (line["source_name"], line["delivery_id"], line["source_file"])
