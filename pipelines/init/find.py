"""What a folder or bucket holds: billing exports at any level by their manifests, else bare files by their columns.

Of several bills, their newest months in figures, and the better one of each payer, which is read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from glob import escape
from itertools import takewhile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import polars as pl

from pipelines.base.console import Console
from pipelines.base.errors import SourceError, counted
from pipelines.config.sources import AnswerSource, BillingSource, InvoiceSource, Reach
from pipelines.doctor.billing import KINDS, sample
from pipelines.ingest.billing.bare import READERS, bare_files, suffix_of
from pipelines.ingest.billing.columns import focus_version
from pipelines.ingest.billing.delivery import Delivery
from pipelines.ingest.billing.exports import detect_kind, ingest, list_deliveries
from pipelines.ingest.billing.manifest import Export, exports_in
from pipelines.ingest.billing.options import Seen, TagKeyCost, see, tag_costs
from pipelines.warehouse.storage import Object
from pipelines.warehouse.stores import open_store

# The other data sets of FOCUS: the file's, its section of the configuration, and its entry there.
DataSet = tuple[str, str, AnswerSource]
# A folder that is one part of an export, such as a month, never its root.
_PARTITION = re.compile(r"[^=]+=.*|\d{8}-\d{8}")
# Names of files that one sentence has room for.
_MOST_NAMES = 5


@dataclass(frozen=True)
class Bill:
    """A bill as a [[billing]] entry would read it, and its deliveries, oldest month first."""

    source: BillingSource
    deliveries: tuple[Delivery, ...]

    @property
    def kind(self) -> str:
        return self.deliveries[-1].kind

    @property
    def months(self) -> str:
        """`2024-02 to 2024-03`."""
        first, last = (self.deliveries[at].billing_period for at in (0, -1))
        return first if first == last else f"{first} to {last}"

    @property
    def title(self) -> str:
        """`manifests of hourly-cur (legacy CUR, 2024-02 to 2024-03)`."""
        return f"{self.what} ({KINDS[self.kind]}, {self.months})"

    @property
    def what(self) -> str:
        files = self.source.files
        return f"files {_shown(files)}" if files else f"manifests of {self.source.export or self.source.name}"


@dataclass(frozen=True)
class Found:
    """The bills and other data sets below a location, and why other files are left out, one sentence each."""

    bills: tuple[Bill, ...]
    data_sets: tuple[DataSet, ...] = ()
    left_out: tuple[str, ...] = ()


def find_bills(location: str, reach: Reach) -> Found:
    """Everything below a location that can be read.

    Raises SourceError where there is no bill, or where none can be read, with the reason for the first.
    """
    listing = open_store(location, **reach).list()
    with TemporaryDirectory(prefix="trainledger-") as folder:
        scratch = Path(folder)
        exports = exports_in(listing)
        sources, data_sets, left_out = _with_manifests(location, exports, reach), [], []
        below_exports = tuple(f"{export.root}/".lstrip("/") for export in exports)
        loose = [item for item in listing if suffix_of(item.key) and not item.key.startswith(below_exports)]
        if sources and loose:
            left_out.append(f"{counted(len(loose), 'file')} outside the exports: {_shown([one.key for one in loose])}.")
        elif loose:
            sources, data_sets, left_out = _bare(location, loose, reach, scratch)
        bills, failed = [], []
        for source in sources:
            try:
                bills.append(Bill(source, tuple(list_deliveries(source, scratch))))
            except SourceError as error:
                failed.append(str(error))
    reasons = (*failed, *left_out)
    if bills:
        return Found(tuple(bills), tuple(data_sets), reasons)
    raise SourceError(
        reasons[0]
        if reasons
        else f"{location} holds no billing manifest and no Parquet or csv file ({counted(len(listing), 'file')} "
        "listed); give the folder or bucket that AWS delivers the export to."
    )


def _with_manifests(location: str, exports: Sequence[Export], reach: Reach) -> list[BillingSource]:
    roots = Counter(export.root for export in exports)
    names = Counter(export.export for export in exports)
    return [
        BillingSource.model_validate(
            {
                "name": _name(export.export if names[export.export] == 1 else f"{export.root}/{export.export}"),
                "location": _below(location, export.root),
                "export": export.export if roots[export.root] > 1 else None,
                **reach,
            }
        )
        for export in exports
    ]


def _bare(
    location: str, items: Sequence[Object], reach: Reach, scratch: Path
) -> tuple[list[BillingSource], list[DataSet], list[str]]:
    """A source for the files of each kind of bill, the other data sets, and why each other file is left out."""
    shared = PurePosixPath(os.path.commonpath([PurePosixPath("/", item.key).parent for item in items])).parts[1:]
    parent = "/".join(takewhile(lambda part: not _PARTITION.fullmatch(part), shared))
    folder = _below(location, parent)
    store = open_store(folder, **reach)
    items = [item for item in store.list() if suffix_of(item.key)]
    name = _name(PurePosixPath(parent or location).name)
    bills: dict[str, list[str]] = {}
    data_sets: list[DataSet] = []
    left_out = []
    for key, file in bare_files(items, store, scratch / name).items():
        if file.data_set and key.endswith((".csv", ".parquet")):
            section = READERS[file.data_set]
            entry = {"name": _name(PurePosixPath(key).stem), "location": _below(folder, key), **reach}
            model = InvoiceSource if section == "invoices" else AnswerSource
            data_sets.append((file.data_set, section, model.model_validate(entry)))
        elif file.fault:
            left_out.append(file.fault)
        else:
            kind = detect_kind(file.columns) or "cur2"
            bills.setdefault(kind + (focus_version(file.columns) if kind == "focus" else ""), []).append(key)
    sources = [
        {"name": name if len(bills) == 1 else f"{name}-{kind}", "location": folder, "files": _patterns(keys, items)}
        for kind, keys in bills.items()
    ]
    return [BillingSource.model_validate({**source, **reach}) for source in sources], data_sets, left_out


def _patterns(keys: Sequence[str], items: Sequence[Object]) -> list[str]:
    """Patterns that match these keys and none of the other items."""
    ends = Counter(suffix_of(item.key) for item in items)
    mine = Counter(map(suffix_of, keys))
    whole = [f"*{end}" for end in mine if mine[end] == ends[end]]
    return whole + [escape(key) for key in keys if f"*{suffix_of(key)}" not in whole]


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _below(location: str, folder: str) -> str:
    return f"{location.rstrip('/')}/{folder}".rstrip("/")


def _name(text: str) -> str:
    """A name for an entry of the configuration."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "bill"


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
        # A bill without a payer may be of any.
        payers = one.seen.payers
        rival = next((read for read in best if not payers or not read.seen.payers or payers & read.seen.payers), None)
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
