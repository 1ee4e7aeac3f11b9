"""The bill as a publication was made from it: its deliveries, which may not be the newest any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.base.errors import SourceError
from pipelines.base.paths import below
from pipelines.ingest.billing.delivery import Delivery, delivery_folder, load
from pipelines.ingest.billing.exports import Progress, RawDelivery, ingest, list_deliveries
from pipelines.ingest.billing.raw import RawBill
from pipelines.warehouse.stores import Stores

if TYPE_CHECKING:
    from pipelines.config.settings import Settings


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
        return [stored[delivery["fingerprint"]] for delivery in self._named]

    def ingest(self, period: str, progress: Progress | None = None) -> list[RawDelivery]:
        """The published deliveries of a month. SourceError when one was replaced and is kept nowhere."""
        if period not in self._stored:
            named = [delivery for delivery in self._named if delivery["billing_period"] == period]
            self._stored[period] = [self._find(delivery, progress) for delivery in named]
        return self._stored[period]

    def _find(self, named: Mapping[str, Any], progress: Progress | None) -> RawDelivery:
        folder = delivery_folder(named["source"], named["billing_period"], named["fingerprint"])
        return load(below(self._raw_root, folder)) or self._fetch(named, progress)

    def _fetch(self, named: Mapping[str, Any], progress: Progress | None) -> RawDelivery:
        name, month = named["source"], named["billing_period"]
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
            raise SourceError(
                f"{lost}, and {current[0].delivery_id} has replaced it; run `trainledger build` and try again."
            )
        return ingest(current[0], source, self._raw_root, progress, stores)
