"""What a folder or bucket holds: billing exports at any level by their manifests, else bare files by their columns."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pipelines.base.console import counted
from pipelines.base.errors import SourceError
from pipelines.config.sources import BillingSource, CommitmentSource, InvoiceSource, Reach
from pipelines.doctor.billing import KINDS
from pipelines.ingest.billing.bare import READERS, SUFFIXES, bare_files
from pipelines.ingest.billing.delivery import Delivery
from pipelines.ingest.billing.exports import detect_kind, list_deliveries
from pipelines.ingest.billing.focus_version import focus_version
from pipelines.ingest.billing.manifest import exports_in
from pipelines.warehouse.storage import Object
from pipelines.warehouse.stores import open_store

# The other data sets of FOCUS: the file's, its section of the configuration, and its entry there.
DataSet = tuple[str, str, InvoiceSource | CommitmentSource]
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
        sources, data_sets, left_out = _with_manifests(location, listing, reach), [], []
        loose = _loose(listing)
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
        else f"{location} holds no billing manifest and no Parquet or csv file ({len(listing):,} files listed); give "
        "the folder or bucket that AWS delivers the export to."
    )


def _with_manifests(location: str, listing: Sequence[Object], reach: Reach) -> list[BillingSource]:
    exports = exports_in(listing)
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


def _loose(listing: Sequence[Object]) -> list[Object]:
    """The files of a bill's form that are below no export."""
    roots = tuple(f"{export.root}/".lstrip("/") for export in exports_in(listing))
    found = [item for item in listing if _suffix(item.key)]
    return [item for item in found if not item.key.startswith(roots)] if roots else found


def _bare(
    location: str, items: Sequence[Object], reach: Reach, scratch: Path
) -> tuple[list[BillingSource], list[DataSet], list[str]]:
    """A source for the files of each kind of bill, the other data sets, and why each other file is left out."""
    parent = os.path.commonpath([PurePosixPath("/", item.key).parent for item in items]).strip("/")
    folder = _below(location, parent)
    store = open_store(folder, **reach)
    items = [item for item in store.list() if _suffix(item.key)]
    name = _name(PurePosixPath(parent or location).name)
    bills: dict[str, list[str]] = {}
    data_sets: list[DataSet] = []
    left_out = []
    for key, file in bare_files(items, store, scratch / name).items():
        if file.data_set and key.endswith((".csv", ".parquet")):
            section = READERS[file.data_set]
            entry = {"name": _name(PurePosixPath(key).stem), "location": _below(folder, key), **reach}
            model = InvoiceSource if section == "invoices" else CommitmentSource
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
    ends = Counter(_suffix(item.key) for item in items)
    mine = Counter(map(_suffix, keys))
    whole = [f"*{end}" for end in mine if mine[end] == ends[end]]
    return whole + [escape(key) for key in keys if f"*{_suffix(key)}" not in whole]


def _suffix(key: str) -> str | None:
    """The end of a key that shows a bill's form, as it is written; None of another file."""
    return next((key[-len(end) :] for end in SUFFIXES if key.lower().endswith(end)), None)


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _below(location: str, folder: str) -> str:
    return f"{location.rstrip('/')}/{folder}".rstrip("/")


def _name(text: str) -> str:
    """A name for an entry of the configuration."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "bill"
