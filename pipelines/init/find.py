"""The billing exports at any level of a folder or bucket: by their manifests, else bare files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pipelines.base.errors import SourceError
from pipelines.config.sources import BillingSource
from pipelines.doctor.billing import KINDS
from pipelines.ingest.billing.bare import SUFFIXES
from pipelines.ingest.billing.delivery import Delivery
from pipelines.ingest.billing.exports import list_deliveries
from pipelines.ingest.billing.manifest import exports_in
from pipelines.warehouse.storage import Object
from pipelines.warehouse.stores import open_store

# Of exports that are equally fresh: what has most columns that a ledger needs.
_PREFERRED = ("cur2", "cur", "focus")


@dataclass(frozen=True)
class Bill:
    """A bill as a [[billing]] entry would read it, and its deliveries, oldest month first."""

    source: BillingSource
    deliveries: tuple[Delivery, ...]

    @property
    def kind(self) -> str:
        return self.deliveries[-1].kind

    @property
    def title(self) -> str:
        """`manifests of hourly-cur (legacy CUR, 2024-02 to 2024-03)`."""
        months = [delivery.billing_period for delivery in self.deliveries]
        span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
        what = f"files {self.source.files}" if self.source.files else f"manifests of {self.source.name}"
        return f"{what} ({KINDS[self.kind]}, {span})"


def find_bills(location: str, reach: Mapping[str, str]) -> list[Bill]:
    """Every export below a location, the one to use first.

    Raises SourceError where there is none, or where none can be read, with the reason for the first.
    """
    listing = open_store(location, **{"endpoint_url": None, "region": None, "profile": None, **reach}).list()
    sources = _with_manifests(location, listing, reach) or _bare(location, listing, reach)
    if not sources:
        raise SourceError(
            f"{location} holds no billing manifest and no Parquet or csv file ({len(listing):,} files listed); give "
            "the folder or bucket that AWS delivers the export to."
        )
    bills, failed = [], []
    with TemporaryDirectory(prefix="trainledger-") as scratch:
        for source in sources:
            try:
                bills.append(Bill(source, tuple(list_deliveries(source, Path(scratch)))))
            except SourceError as error:
                failed.append(error)
    if not bills:
        raise failed[0]
    newest_first = sorted(bills, key=lambda bill: _PREFERRED.index(bill.kind))
    return sorted(newest_first, key=lambda bill: bill.deliveries[-1].billing_period, reverse=True)


def _with_manifests(location: str, listing: Sequence[Object], reach: Mapping[str, str]) -> list[BillingSource]:
    exports = exports_in(listing)
    roots = Counter(export.root for export in exports)
    return [
        BillingSource.model_validate(
            {
                "name": _name(export.export),
                "location": _below(location, export.root),
                "export": export.export if roots[export.root] > 1 else None,
                **reach,
            }
        )
        for export in exports
    ]


def _bare(location: str, listing: Sequence[Object], reach: Mapping[str, str]) -> list[BillingSource]:
    found: dict[str, list[str]] = {}
    for item in listing:
        if suffix := next((end for end in SUFFIXES if item.key.lower().endswith(end)), None):
            found.setdefault(suffix, []).append(item.key)
    if not found:
        return []
    suffix, keys = max(found.items(), key=lambda one: len(one[1]))
    parent = os.path.commonpath([PurePosixPath("/", key).parent for key in keys]).strip("/")
    name = _name(PurePosixPath(parent or location).name)
    entry = {"name": name, "location": _below(location, parent), "files": f"*{suffix}", **reach}
    return [BillingSource.model_validate(entry)]


def _below(location: str, folder: str) -> str:
    return f"{location.rstrip('/')}/{folder}".rstrip("/")


def _name(text: str) -> str:
    """A name for a [[billing]] entry."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._") or "bill"
