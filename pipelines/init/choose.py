"""Which of several bills to read: their newest months in figures, and the better one of each payer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from pipelines.base.console import Console
from pipelines.base.errors import SourceError
from pipelines.doctor.billing import KINDS, sample
from pipelines.ingest.billing.exports import ingest
from pipelines.ingest.billing.options import Seen, TagKeyCost, see, tag_costs
from pipelines.init.find import Bill

# A month of more bytes is judged by one of its files.
_MOST_BYTES = 512 << 20
# Of exports that are equally good: what has most columns that a ledger needs.
_PREFERRED = ("focus", "cur", "cur2")
# What makes a bill the better one, in the order of `_merits`.
_REASONS = (
    "has hourly lines, which runs need",
    "names resources, by which runs are joined",
    "has a newer month",
    "has more of the columns that a ledger reads",
    "has more months",
)


@dataclass(frozen=True)
class Candidate:
    """A bill and its newest month: its lines, or those of one file of many, its options and tag keys.

    `rival` is the bill of the same payer that is read instead, because it `reason`.
    """

    bill: Bill
    line_count: int
    is_whole: bool
    seen: Seen
    tag_keys: tuple[TagKeyCost, ...]
    rival: Candidate | None = None
    reason: str = ""

    @property
    def month(self) -> str:
        return self.bill.deliveries[-1].billing_period


def examined(
    bills: Sequence[Bill], raw_root: Path, now: datetime, console: Console
) -> tuple[list[Candidate], list[str]]:
    """The newest month of each bill, and why others are left out. SourceError where none can be read.

    The month of a single bill is read into the raw store, where the first build finds it.
    """
    candidates, failed = [], []
    with TemporaryDirectory(prefix="trainledger-") as folder:
        for bill in bills:
            console.note(f"Reading {bill.deliveries[-1].billing_period} of {bill.source.name} …")
            try:
                candidates.append(_examined(bill, raw_root if len(bills) == 1 else Path(folder), now))
            except SourceError as error:
                failed.append(str(error))
    if not candidates:
        raise SourceError(failed[0])
    return candidates, failed


def chosen(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The bills, those to read first: for each payer the better one, whose rivals would count the same dollars."""
    best: list[Candidate] = []
    others: list[Candidate] = []
    for one in sorted(candidates, key=_merits, reverse=True):
        rival = next((read for read in best if not _are_apart(read, one)), None)
        if rival is None:
            best.append(one)
            continue
        merits = zip(_merits(rival), _merits(one), _REASONS, strict=True)
        reason = next((reason for mine, its, reason in merits if mine != its), "is as good")
        others.append(replace(one, rival=rival, reason=reason))
    return best + others


def compared(candidates: Sequence[Candidate]) -> pl.DataFrame:
    """The bills as a table for the terminal."""
    rows = [
        (
            one.bill.what,
            KINDS[one.bill.kind],
            one.bill.months,
            f"{one.line_count:,}" if one.is_whole else f"over {one.line_count:,}",
            ", ".join(f"{amount:,.2f} {currency}" for currency, amount in one.seen.billed_cost.items()),
            one.seen.granularity or "unknown",
            f"{one.seen.resource_count / one.seen.used_count:.0%}" if one.seen.used_count else "unknown",
            "no" if one.rival else "yes",
        )
        for one in candidates
    ]
    names = ["bill", "kind", "months", "lines", "billed", "lines are", "with resource id", "read"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _examined(bill: Bill, raw_root: Path, now: datetime) -> Candidate:
    newest = bill.deliveries[-1]
    with TemporaryDirectory(prefix="trainledger-") as scratch:
        is_whole = not newest.missing and sum(item.size for item in newest.objects) <= _MOST_BYTES
        raw = ingest(newest, bill.source, raw_root) if is_whole else sample(newest, bill.source, Path(scratch))
        if raw is None:
            raise SourceError(
                f"{bill.what}: no file of {newest.billing_period} is small enough to look into; write its [[billing]] "
                f'entry by hand, location = "{bill.source.location}".'
            )
        return Candidate(bill, raw.line_count, is_whole, see(raw, {}, now), tuple(tag_costs(raw)))


def _merits(one: Candidate) -> tuple[bool, bool, str, int, int]:
    kind = _PREFERRED.index(one.bill.kind)
    is_hourly = one.seen.granularity == "hourly"
    return is_hourly, one.seen.resource_count > 0, one.month, kind, len(one.bill.deliveries)


def _are_apart(one: Candidate, other: Candidate) -> bool:
    """Whether two bills have no payer in common; one without a payer may be of any."""
    return bool(one.seen.payers and other.seen.payers) and not one.seen.payers & other.seen.payers
