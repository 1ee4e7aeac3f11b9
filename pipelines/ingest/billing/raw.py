"""The delivered bill of all configured sources, one billing month at a time, as the models read it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.base.errors import SourceError
from pipelines.base.paths import below
from pipelines.ingest.billing.columns import LISTS
from pipelines.ingest.billing.conflicts import refuse_copies
from pipelines.ingest.billing.delivery import Delivery, RawDelivery, delivery_folder, load
from pipelines.ingest.billing.exports import Progress, ingest, list_deliveries
from pipelines.ingest.billing.select import RawSelect, raw_select
from pipelines.warehouse.stores import Stores

# Listing waits on the network, and a listing of years takes some memory.
_LISTED_AT_ONCE = 4

if TYPE_CHECKING:
    from pipelines.config.settings import Settings
    from pipelines.config.sources import BillingSource
    from pipelines.engine import Engine


class RawBill:
    """Deliveries by month. Each source is listed once in the life of this object."""

    def __init__(self, raw_root: Path, settings: Settings):
        self._raw_root = raw_root
        self._settings = settings
        self._sources = {source.name: source for source in settings.billing}
        self._stores = Stores()
        self._stored: dict[str, list[RawDelivery]] = {}
        self._selects: dict[tuple[str, str], RawSelect] = {}

    @cached_property
    def deliveries(self) -> list[Delivery]:
        """The current delivery of every month of every source, by source and month.

        A month whose manifest is gone, as buckets forget old months, stays as it was last delivered here.
        """
        with ThreadPoolExecutor(_LISTED_AT_ONCE) as pool:
            return [delivery for found in pool.map(self._delivered, self._sources.values()) for delivery in found]

    def ingest(self, period: str, progress: Progress | None = None) -> list[RawDelivery]:
        """Bring what the sources deliver for a month into the raw store; what is there already stays."""
        if period not in self._stored:
            deliveries = [delivery for delivery in self.deliveries if delivery.billing_period == period]
            refuse_copies(deliveries, self._sources)
            self._stored[period] = [
                ingest(delivery, self._sources[delivery.source], self._raw_root, progress, self._stores)
                for delivery in deliveries
            ]
        return self._stored[period]

    def fingerprint(self, table: str, period: str | None) -> str:
        """A text that changes when anything a model can see of the month's lines in a raw table does."""
        select = self._select(table, period)
        raws = [raw for raw in self.ingest(period or "") if raw.delivery.listed.table == table]
        return select.sql + " ".join(f"{raw.delivery.fingerprint} {raw.converter}" for raw in raws)

    def warnings(self, period: str) -> dict[str, tuple[str, ...]]:
        """By delivered raw table: values read as missing, and tags with several spellings; one sentence each."""
        delivered = {raw.delivery.listed.table for raw in self.ingest(period)}
        return {table: self._select(table, period).warnings for table in sorted(delivered)}

    def view(self, engine: Engine, table: str, period: str | None) -> None:
        """Name the month's lines of a raw table, under its normalized columns, in an engine."""
        select = self._select(table, period)
        for view, files in select.views.items():
            engine.scan_files(view, files)
        engine.view_sql(table, select.sql)

    def forget_superseded(self) -> None:
        """Remove stored deliveries that a newer one of the same month has replaced."""
        for delivery in self.deliveries:
            current = delivery.folder(self._raw_root)
            for folder in current.parent.glob("*/"):
                if folder != current and current.is_dir():
                    shutil.rmtree(folder, ignore_errors=True)

    def _delivered(self, source: BillingSource) -> list[Delivery]:
        """The deliveries of one source, oldest month first, with those that only the raw store still has."""
        found = {listed.billing_period: listed for listed in list_deliveries(source, self._raw_root, self._stores)}
        # A month that this source is no longer read for belongs to another.
        months = [month for month in (self._raw_root / source.name).glob("*/") if month.name not in found]
        for folder in (each for month in months if source.reads(month.name) for each in month.glob("*/")):
            if folder.name.startswith("."):
                continue
            if (raw := load(folder)) is None:
                fix = "restore it from a copy, or delete it to go on without that month"
                raise SourceError(f"{folder} is damaged and its export delivers {folder.parent.name} no more; {fix}.")
            # Its files may be gone from the source, so it stays as it is.
            gone = tuple(item.key for item in raw.delivery.objects)
            found[folder.parent.name] = replace(raw.delivery, missing=gone, is_gone=True)
        return [delivery for _, delivery in sorted(found.items())]

    def _select(self, table: str, period: str | None) -> RawSelect:
        if period is None:
            raise SourceError("The bill is read one month at a time; a model over it must be replaced by month.")
        # Every table made from the bill needs it for its fingerprint.
        if (table, period) not in self._selects:
            delivered = [raw for raw in self.ingest(period) if raw.delivery.listed.table == table]
            listed = next(listed for listed in LISTS if listed.table == table)
            self._selects[table, period] = raw_select(delivered, self._settings.tag_keys, listed)
        return self._selects[table, period]


class PublishedBill(RawBill):
    """The deliveries a publication names (`inputs["deliveries"]`), read from the raw store without a look at the
    sources; a source is read again only for what the raw store has lost."""

    def __init__(self, raw_root: Path, settings: Settings, named: Sequence[Mapping[str, Any]]):
        super().__init__(raw_root, settings)
        self._named = named

    @cached_property
    def deliveries(self) -> list[Delivery]:
        """The published deliveries, whatever the sources deliver now."""
        months = {delivery["billing_period"] for delivery in self._named}
        stored = {raw.delivery.fingerprint: raw.delivery for month in months for raw in self.ingest(month)}
        return [replace(stored[one["fingerprint"]], is_gone=one.get("is_gone", False)) for one in self._named]

    def ingest(self, period: str, progress: Progress | None = None) -> list[RawDelivery]:
        """The published deliveries of a month. SourceError when one was replaced and is kept nowhere."""
        if period not in self._stored:
            named = [delivery for delivery in self._named if delivery["billing_period"] == period]
            self._stored[period] = [self._find(delivery, progress) for delivery in named]
        return self._stored[period]

    def _find(self, named: Mapping[str, Any], progress: Progress | None) -> RawDelivery:
        name, month = named["source"], named["billing_period"]
        if stored := load(below(self._raw_root, delivery_folder(name, month, named["fingerprint"]))):
            return stored
        lost = f"The bill lines of delivery {named['delivery_id']} ({name}, {month}) are not in the raw store"
        source = self._sources.get(name)
        if source is None:
            raise SourceError(f"{lost} and no [[billing]] source is called {name}; configure it again.")
        # Opened now: the dashboard may run for days.
        stores = Stores()
        listed = list_deliveries(source, self._raw_root, stores)
        current = [delivery for delivery in listed if delivery.billing_period == month]
        if not current:
            raise SourceError(f"{lost} and {source.location} delivers the month no more; have it delivered again.")
        if current[0].fingerprint != named["fingerprint"]:
            newer = current[0].delivery_id
            raise SourceError(f"{lost}, and {newer} has replaced it; run `trainledger build` and try again.")
        return ingest(current[0], source, self._raw_root, progress, stores)
