"""The delivered bill of all configured sources, one billing month, or what one source delivers of it, at a time."""

import hashlib
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from pipelines.base.errors import SourceError, TrainledgerError
from pipelines.base.paths import below
from pipelines.config.settings import Settings
from pipelines.config.sources import BillingSource
from pipelines.engine import Engine
from pipelines.ingest.billing.columns import CUR, FOCUS, LISTS
from pipelines.ingest.billing.delivery import (
    RECORD,
    SUPERSEDED,
    Delivery,
    RawDelivery,
    delivery_folder,
    load,
    save,
    save_superseded,
    superseded,
)
from pipelines.ingest.billing.exports import Progress, ingest, ingest_in_store, is_current, list_deliveries
from pipelines.ingest.billing.manifest import CACHE, in_threads
from pipelines.ingest.billing.select import RawSelect, raw_select
from pipelines.warehouse.part import is_within, month_of, part_of, source_of
from pipelines.warehouse.storage import Object, Store
from pipelines.warehouse.storage_local import LocalStore
from pipelines.warehouse.stores import Stores

# The files that describe deliveries, which a fresh machine copies from the bucket first.
_RECORDS = (RECORD, CACHE)
# Payer, account and month that a line bills, as the staging models read them.
_BILLED = {
    CUR: ("bill_payer_account_id", "line_item_usage_account_id", "bill_billing_period_start_date"),
    FOCUS: ("billing_account_id", "coalesce(sub_account_id, billing_account_id)", "billing_period_start"),
}

Cluster = Callable[[], Engine]


class RawBill:
    """Deliveries by month. Each source is listed once in the life of this object.

    With a warehouse in a bucket, `store`, the raw store is its folder `raw/`, so that a fresh machine reads no source
    file of an unchanged month; `raw_root` is then a cache of records and of the files being read. `cluster` opens an
    engine whose executors fetch and read the files; this machine then reads none of them.
    """

    def __init__(self, raw_root: Path, settings: Settings, store: Store | None = None, cluster: Cluster | None = None):
        self._raw_root = raw_root
        self._store, self._cluster = store, cluster
        self._kept: dict[Path, Object] = {}
        self._settings = settings
        self._sources = {source.name: source for source in settings.billing}
        self._stores = Stores()
        self._stored: dict[str, list[RawDelivery]] = {}
        self._of_source: dict[str, RawDelivery] = {}
        self._selects: dict[tuple[str, ...], RawSelect] = {}

    @cached_property
    def deliveries(self) -> list[Delivery]:
        """The current delivery of every month of every source, by source and month.

        A month whose manifest is gone, as buckets forget old months, stays as it was last delivered here.
        """
        self._fetch_records()
        listed = in_threads(self._delivered, [*self._sources.values()])
        found = [delivery for deliveries in listed for delivery in deliveries]
        for cache in self._raw_root.rglob(CACHE):
            self._keep_record(cache)
        return found

    def ingest(self, period: str, progress: Progress | None = None) -> list[RawDelivery]:
        """Bring what the sources, or one of them, deliver for a month into the raw store; what is there stays."""
        if period not in self._stored:
            deliveries = {part_of(each.billing_period, each.source): each for each in self.deliveries}
            wanted = [part for part in deliveries if is_within(part, period)]
            refuse_copies([deliveries[part] for part in wanted], self._sources)
            for part in wanted:
                if part not in self._of_source:
                    self._of_source[part] = self._ingested(deliveries[part], progress)
            self._stored[period] = [self._of_source[part] for part in wanted]
        return self._stored[period]

    def fingerprint(self, table: str, period: str | None) -> str:
        """A text that changes when anything a model can see of the month's lines in a raw table does."""
        select, delivered = self._select(table, period)
        return select.sql + " ".join(f"{raw.delivery.fingerprint} {raw.converter}" for raw in delivered)

    def warnings(self, period: str) -> dict[str, tuple[str, ...]]:
        """By delivered raw table: values read as missing, and tags with several spellings; one sentence each."""
        delivered = {raw.delivery.listed.table for raw in self.ingest(period)}
        return {table: self._select(table, period)[0].warnings for table in sorted(delivered)}

    def view(self, engine: Engine, table: str, period: str | None) -> None:
        """Name the month's lines of a raw table, under its normalized columns, in an engine."""
        select, delivered = self._select(table, period)
        self.scan(engine, select, delivered)
        engine.view_sql(table, select.sql)

    def scan(self, engine: Engine, select: RawSelect, delivered: Sequence[RawDelivery]) -> None:
        """Name the files of deliveries, as `select` reads them, in an engine."""
        for raw in delivered if self._cluster is None else ():
            self.bring(raw)
        for view, files in select.views.items():
            bucket = self._store if self._cluster else None
            engine.scan_files(view, [bucket.uri(self._key(file)) for file in files] if bucket else files)

    def shared_accounts(self, stored: Sequence[RawDelivery], engine: Engine) -> pl.DataFrame:
        """Each account of a payer that several of these deliveries of one month bill for the same month.

        Columns: payer_account_id, account_id, billing_month, source_names (sorted). Reads three columns of each file.
        """
        billed = []
        for raw in stored:
            payer, account, month = _BILLED[raw.delivery.listed]
            select = raw_select([raw], {}, raw.delivery.listed)
            try:
                self.scan(engine, select, [raw])
                lines = engine.query(
                    f"select distinct {payer} as payer_account_id, {account} as account_id, "
                    f"coalesce(cast({month} as date), date '{raw.delivery.billing_period}-01') as billing_month "
                    f"from ({select.sql}) as line"
                )
            except TrainledgerError as error:
                fix = "remove it and run `trainledger build`, which reads the delivery again"
                raise SourceError(f"{raw.folder} is damaged ({error}); {fix}.") from None
            billed.append(lines.with_columns(source_name=pl.lit(raw.delivery.source)))
        key = ["payer_account_id", "account_id", "billing_month"]
        shared = pl.concat(billed).group_by(key).agg(source_names=pl.col("source_name").unique().sort())
        return shared.filter(pl.col("source_names").list.len() > 1).sort(key)

    def forget_superseded(self) -> None:
        """Remove stored deliveries that a newer one of the same month has replaced; where they lay stays known."""
        for delivery in self.deliveries:
            current = delivery.folder(self._raw_root)
            for folder in current.parent.glob("*/"):
                if folder != current and current.is_dir():
                    if raw := load(folder, is_whole=False):
                        self._keep_record(save_superseded(raw.delivery, self._raw_root))
                    shutil.rmtree(folder, ignore_errors=True)
                    if store := self._store:
                        for item in store.list(f"{self._key(folder)}/"):
                            store.delete(item.key)

    def forget_unpublished(self, published: Collection[str]) -> None:
        """Forget replaced deliveries whose fingerprint no publication has."""
        store = self._store or LocalStore(str(self._raw_root.parent))
        known = {f"{fingerprint[:16]}.json" for fingerprint in published}
        for item in store.list("raw/"):
            name = PurePosixPath(item.key).name
            if SUPERSEDED.fullmatch(name) and name not in known:
                store.delete(item.key)
                below(self._raw_root, item.key.removeprefix("raw/")).unlink(missing_ok=True)

    def _delivered(self, source: BillingSource) -> list[Delivery]:
        """The deliveries of one source, oldest month first, with those that only the raw store still has."""
        is_whole = self._store is None
        listing = list_deliveries(source, self._raw_root, self._stores, self._run, is_whole=is_whole)
        found = {listed.billing_period: listed for listed in listing}
        # A month that this source is no longer read for belongs to another.
        months = [month for month in (self._raw_root / source.name).glob("*/") if month.name not in found]
        for folder in (each for month in months if source.reads(month.name) for each in month.glob("*/")):
            if folder.name.startswith("."):
                continue
            if (raw := load(folder, is_whole=is_whole)) is None:
                fix = "restore it from a copy, or delete it to go on without that month"
                raise SourceError(f"{folder} is damaged and its export delivers {folder.parent.name} no more; {fix}.")
            # Its files may be gone from the source, so it stays as it is.
            gone = tuple(item.key for item in raw.delivery.objects)
            found[folder.parent.name] = replace(raw.delivery, missing=gone, is_gone=True)
        return [delivery for _, delivery in sorted(found.items())]

    def _ingested(self, delivery: Delivery, progress: Progress | None) -> RawDelivery:
        source, store = self._sources[delivery.source], self._store
        folder = delivery.folder(self._raw_root)
        known = load(folder, is_whole=not store) if not store or folder / RECORD in self._kept else None
        if known and is_current(known, delivery):
            return known
        if not self._cluster:
            raw = ingest(delivery, source, self._raw_root, progress, self._stores)
            if store:
                for file in raw.files:
                    store.upload(raw.path(file), self._key(raw.path(file)))
        else:
            with self._cluster() as engine:
                target = store or LocalStore(str(self._raw_root.parent))
                raw = ingest_in_store(delivery, source, self._raw_root, target, engine)
            raw.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(raw.folder / "ids", ignore_errors=True)
            save(raw, raw.folder)
        self._keep_record(raw.folder / RECORD)
        return raw

    def _run(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The results of a function that reads the bill, for each item in order: in threads here, or on executors."""
        if self._cluster is None:
            return in_threads(function, items)
        with self._cluster() as engine:
            return engine.map(function, items)

    def bring(self, raw: RawDelivery) -> None:
        """Download the files of a delivery from the bucket, unless all are on this machine."""
        if self._store and not raw.is_here:
            for file in raw.files:
                self._store.download(self._key(raw.path(file)), raw.path(file))

    def _fetch_records(self) -> None:
        """Download the records of the bucket that differ from those of this machine."""
        for item in self._store.list("raw/") if self._store else ():
            path = below(self._raw_root, item.key.removeprefix("raw/"))
            if self._store and (path.name in _RECORDS or SUPERSEDED.fullmatch(path.name)):
                self._kept[path] = item
                if not _is_same(path, item):
                    self._store.download(item.key, path)

    def _keep_record(self, path: Path) -> None:
        """Upload a record to the bucket, unless it has the same."""
        if self._store and not _is_same(path, self._kept.get(path)):
            self._store.upload(path, self._key(path))

    def _key(self, path: Path) -> str:
        return f"raw/{path.relative_to(self._raw_root).as_posix()}"

    def _select(self, table: str, period: str | None) -> tuple[RawSelect, list[RawDelivery]]:
        """The SELECT that shows the month's lines of a raw table, and the deliveries it reads."""
        if period is None:
            raise SourceError("The bill is read one month at a time; a model over it must be replaced by month.")
        delivered = [raw for raw in self.ingest(period) if raw.delivery.listed.table == table]
        key = (table, *(f"{raw.delivery.source} {raw.delivery.fingerprint}" for raw in delivered))
        # Every table made from the bill needs it for its fingerprint.
        if key not in self._selects:
            listed = next(listed for listed in LISTS if listed.table == table)
            self._selects[key] = raw_select(delivered, self._settings.tag_keys, listed)
        return self._selects[key], delivered


class PublishedBill(RawBill):
    """The deliveries a publication names (`inputs["deliveries"]`), read from the raw store without a look at the
    sources; a source is read again only for what the raw store has lost."""

    def __init__(
        self,
        raw_root: Path,
        settings: Settings,
        named: Sequence[Mapping[str, Any]],
        store: Store | None = None,
        cluster: Cluster | None = None,
    ):
        super().__init__(raw_root, settings, store, cluster)
        self._named = named

    @cached_property
    def deliveries(self) -> list[Delivery]:
        """The published deliveries, whatever the sources deliver now."""
        months = {delivery["billing_period"] for delivery in self._named}
        stored = {raw.delivery.fingerprint: raw.delivery for month in months for raw in self.ingest(month)}
        return [replace(stored[one["fingerprint"]], is_gone=one.get("is_gone", False)) for one in self._named]

    def ingest(self, period: str, progress: Progress | None = None) -> list[RawDelivery]:
        """The published deliveries of a month. SourceError when one was replaced and is kept nowhere."""
        if not self._stored:
            self._fetch_records()
        month, source = month_of(period), source_of(period)
        if month not in self._stored:
            named = [delivery for delivery in self._named if delivery["billing_period"] == month]
            self._stored[month] = [self._find(delivery, progress) for delivery in named]
        return [raw for raw in self._stored[month] if source in (None, raw.delivery.source)]

    def _find(self, named: Mapping[str, Any], progress: Progress | None) -> RawDelivery:
        name, month = named["source"], named["billing_period"]
        folder = below(self._raw_root, delivery_folder(name, month, named["fingerprint"]))
        if stored := load(folder, is_whole=self._store is None):
            return stored
        lost = f"The bill lines of delivery {named['delivery_id']} ({name}, {month}) are not in the raw store"
        source = self._sources.get(name)
        if source is None:
            raise SourceError(f"{lost} and no [[billing]] source is called {name}; configure it again.")
        # Opened now: the dashboard may run for days.
        self._stores = Stores()
        if replaced := self._unchanged(superseded(folder), source):
            return self._ingested(replaced, progress)
        listed = list_deliveries(source, self._raw_root, self._stores, self._run)
        current = [delivery for delivery in listed if delivery.billing_period == month]
        if not current:
            raise SourceError(f"{lost} and {source.location} delivers the month no more; have it delivered again.")
        if current[0].fingerprint != named["fingerprint"]:
            newer = current[0].delivery_id
            raise SourceError(
                f"{lost}, and {newer} has replaced it; run `trainledger build` and try again with the newest "
                "publication, or put its files back."
            )
        return self._ingested(current[0], progress)

    def _unchanged(self, delivery: Delivery | None, source: BillingSource) -> Delivery | None:
        """A delivery whose files all lie in the source as they were read."""
        if delivery is None:
            return None
        store = self._stores.open(source.location, **source.reach)
        now = {(item.key, item.size, item.etag) for read in delivery.objects for item in store.list(read.key)}
        return delivery if {(read.key, read.size, read.etag) for read in delivery.objects} <= now else None


def _is_same(path: Path, item: Object | None) -> bool:
    """Whether a small file equals an object by its MD5. Where ETags are other digests, it never does."""
    return item is not None and path.is_file() and hashlib.md5(path.read_bytes()).hexdigest() == item.etag


def refuse_copies(deliveries: Sequence[Delivery], sources: Mapping[str, BillingSource]) -> None:
    """SourceError when two deliveries of a month are the same, in two locations; reads none of their files."""
    first: dict[tuple, Delivery] = {}
    for delivery in deliveries:
        files = sorted((PurePosixPath(item.key).name, item.size) for item in delivery.objects)
        other = first.setdefault((delivery.delivery_id, *files), delivery)
        if other is not delivery and files:
            manifests = [f"{sources[found.source].location}/{found.manifest_key}" for found in (other, delivery)]
            raise SourceError(
                f"[[billing]] {other.source} and {delivery.source} read the same delivery of {delivery.billing_period} "
                f"({' and '.join(dict.fromkeys(manifests))}), so its lines would count twice; remove one of the two "
                "entries, or point its location at another export."
            )
