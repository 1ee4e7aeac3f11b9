"""AWS billing exports (legacy CUR, CUR 2.0, FOCUS) into the raw store, one delivery of a billing month at a time.

Only the files a current manifest names are read. Parquet is kept as delivered; a csv is converted once.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Semaphore
from types import MappingProxyType

from pipelines.base.code import code_digest
from pipelines.base.errors import SourceError, listing
from pipelines.config.sources import BillingSource
from pipelines.engine import Engine
from pipelines.ingest.billing.bare import bare_files, read_bare
from pipelines.ingest.billing.columns import ColumnList, RawFile
from pipelines.ingest.billing.delivery import Delivery, Kind, Map, RawDelivery, column_list, load, save
from pipelines.ingest.billing.manifest import Manifest, find_manifests, in_threads, read_manifests
from pipelines.warehouse.storage import Object, Store, sha256_of
from pipelines.warehouse.stores import Stores

Progress = Callable[[int, int, str], None]

# The module whose code makes the files of the raw store.
CONVERTER = "pipelines.ingest.billing.convert"

# Converting takes the processor and some 400 MB a file.
_CONVERTED_AT_ONCE = 2
# So much of a fingerprint is the manifest's, the rest may be that of its files' tags.
_OF_MANIFEST = 8


def list_deliveries(
    source: BillingSource, raw_root: Path, stores: Stores | None = None, run: Map = in_threads, *, is_whole: bool = True
) -> list[Delivery]:
    """The current delivery of every billing month of an export, oldest month first.

    Costs one listing, plus one read for each manifest that changed since the last call with this `raw_root`. Files of
    a bill that have to be looked into are read by `run`; without `is_whole` records are known without their files.
    Raises SourceError when the export cannot be listed or a manifest is invalid.
    """
    store = (stores or Stores()).open(source.location, **source.reach)
    with listing(f"[[billing]] {source.name}"):
        items = store.list()
    if source.files:
        bare = read_bare(source, items, store, raw_root / source.name, run)
        manifests = [manifest for manifest in bare if source.reads(manifest.path.period)]
    else:
        paths = [path for path in find_manifests(items, store, source.export) if source.reads(path.period)]
        manifests = read_manifests(paths, items, store, raw_root / source.name)
    found = {item.key: item for item in items}
    manifests = _with_columns(manifests, found, store, raw_root / source.name / "columns", run)
    delivered = [_delivery(source, manifest, found, store) for manifest in manifests]
    deliveries = [_as_stored(delivery, raw_root, store, run, is_whole) for delivery in delivered]
    return sorted(deliveries, key=lambda delivery: delivery.billing_period)


def ingest(
    delivery: Delivery,
    source: BillingSource,
    raw_root: Path,
    progress: Progress | None = None,
    stores: Stores | None = None,
) -> RawDelivery:
    """The delivery in the raw store, whole or not at all; one that is there already is returned as it is.

    One that other code has converted is converted again, as long as its files are there.
    `progress(done, total, label)` is called with delivered bytes, from any thread. Memory does not grow with the
    number of lines. Raises SourceError, naming file, row, column and the fix, for a file that is not a bill.
    """
    folder, converter = delivery.folder(raw_root), converter_of(delivery.listed)
    stored = load(folder)
    if stored and is_current(stored, delivery):
        return stored
    store = (stores or Stores()).open(source.location, **source.reach)
    _refuse_missing(delivery, store)
    _sweep(folder.parent)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        files = _store_files(delivery, store, temporary, source.unpack_ratio, stored, progress)
        raw = RawDelivery(delivery, folder, files, converter)
        save(raw, temporary)
        _move(temporary, folder, converter)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return raw


def is_current(stored: RawDelivery, delivery: Delivery) -> bool:
    """Whether a stored delivery need not be converted again, or no longer can be."""
    return stored.converter == converter_of(delivery.listed) or bool(delivery.missing)


def _refuse_missing(delivery: Delivery, store: Store) -> None:
    if delivery.missing:
        raise SourceError(
            f"{store.uri(delivery.manifest_key)} names {store.uri(delivery.missing[0])}, which is not there; "
            "wait for the delivery to finish or have it delivered again."
        )


def converter_of(listed: ColumnList) -> str:
    """A digest of what makes the files of the raw store: the code, and the list of columns that it reads."""
    return hashlib.sha256(f"{code_digest(CONVERTER)} {listed.digest}".encode()).hexdigest()[:16]


def detect_kind(columns: Sequence[str]) -> Kind | None:
    """Which export has these columns (facts aws-billing 1); None when they fit several."""
    names = {name.lower() for name in columns}
    if "billedcost" in names:
        return "focus"
    if "bill_payer_account_name" in names:
        return "cur2"
    # A legacy report has a column per tag, in Parquet too; CUR 2.0 has a map of them.
    return "cur" if any("/" in name or name.startswith("resource_tags_") for name in names) else None


def _with_columns(
    manifests: Sequence[Manifest], found: dict[str, Object], store: Store, cache: Path, run: Map
) -> list[Manifest]:
    """The manifests; one that lists no columns has those of its first file, which is read once for that."""
    first = {
        manifest.path: item
        for manifest in manifests
        if not manifest.columns and (item := next((found[key] for key in manifest.files if key in found), None))
    }
    looks = bare_files([*first.values()], store, cache, run) if first else {}
    return [
        replace(each, columns=tuple(looks[first[each.path].key].columns)) if each.path in first else each
        for each in manifests
    ]


def _delivery(source: BillingSource, manifest: Manifest, found: dict[str, Object], store: Store) -> Delivery:
    detected = detect_kind(manifest.columns)
    if source.kind != "auto" and detected and column_list(detected) is not column_list(source.kind):
        raise SourceError(
            f"{store.uri(manifest.path.object.key)} names files with the columns of another kind of bill "
            f'({column_list(detected).export}); write kind = "auto" in its [[billing]] entry.'
        )
    # Ambiguous columns are in snake case, as CUR 2.0 writes them under a manifest of data files.
    kind = source.kind if source.kind != "auto" else detected or manifest.kind
    # A csv is converted by our list of columns, so a new list means converting it again.
    is_kept = all(key.endswith(".parquet") for key in manifest.files)
    identity = "\n".join((source.name, "" if is_kept else column_list(kind).digest, manifest.text))
    return Delivery(
        source=source.name,
        billing_period=manifest.path.period,
        delivery_id=manifest.delivery_id,
        kind=kind,
        manifest_key=manifest.path.object.key,
        objects=tuple(found[key] for key in manifest.files if key in found),
        missing=tuple(key for key in manifest.files if key not in found),
        fingerprint=hashlib.sha256(identity.encode()).hexdigest(),
        focus_version=manifest.focus_version,
    )


def _as_stored(delivery: Delivery, raw_root: Path, store: Store, run: Map, is_whole: bool) -> Delivery:
    """The delivery by the fingerprint it is stored under, by one of its own where a file was replaced since.

    A copy may bring a manifest before the files it names. A file that has gone since is as it was.
    """
    now = {item.key: item for item in delivery.objects}
    folder = delivery.folder(raw_root)
    of_manifest = delivery.fingerprint[:_OF_MANIFEST]
    folders = [found for found in folder.parent.glob("*/") if found.name.startswith(of_manifest)]
    stored = [load(found, is_whole=is_whole) for found in folders]
    # So few digits of two manifests may be equal by chance.
    alike = [raw for raw in stored if raw and raw.delivery.delivery_id == delivery.delivery_id]
    for known in alike:
        seals = {file.key: file.sha256 for file in known.files}
        items = known.delivery.objects
        if all(_is_unchanged(item, now.get(item.key), seals.get(item.key, ""), store, run) for item in items):
            return replace(delivery, fingerprint=known.delivery.fingerprint)
    if not alike:
        return delivery
    tags = sorted((item.key, item.etag) for item in delivery.objects)
    own = hashlib.sha256(repr((delivery.fingerprint, tags)).encode()).hexdigest()
    return replace(delivery, fingerprint=delivery.fingerprint[:_OF_MANIFEST] + own[_OF_MANIFEST:])


def _is_unchanged(stored: Object, now: Object | None, sha256: str, store: Store, run: Map) -> bool:
    """Whether a file is as it was stored; its content is read only where its tag changed and its size did not."""
    if now is None or now.etag == stored.etag:
        return True
    # Older versions recorded no digest.
    if now.size != stored.size or not sha256:
        return now.size == stored.size
    return run(lambda key: sha256_of(store.open(key)), [now.key]) == [sha256]


def _store_files(
    delivery: Delivery, store: Store, folder: Path, ratio: float, before: RawDelivery | None, progress: Progress | None
) -> tuple[RawFile, ...]:
    # The libraries that read csv and Parquet are imported for new deliveries only.
    from pipelines.ingest.billing.convert import refuse_copies
    from pipelines.ingest.billing.repeats import with_repeats_here

    # Parquet that is kept as it came need not be fetched twice.
    sizes = {item.key: item.size for item in delivery.objects if item.key.endswith(".parquet")}
    files = before.files if before else ()
    kept = {file.key: before.path(file) for file in files if before and sizes.get(file.key) == file.size}
    total = sum(item.size for item in delivery.objects)
    label = f"{delivery.source} {delivery.billing_period}"
    lock, converting, done = Lock(), Semaphore(_CONVERTED_AT_ONCE), 0

    def on_bytes(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            if progress:
                progress(min(done, total), total, label)

    store_file = partial(
        _store_file, delivery, store, folder, ratio, kept=kept, converting=converting, on_bytes=on_bytes
    )
    stored = in_threads(store_file, range(len(delivery.objects)))
    stored = with_repeats_here(stored, folder, delivery.listed.billed, store.uri)
    refuse_copies(stored, lambda file: sha256_of((folder / file.name).open("rb")), store.uri, is_bare=delivery.is_bare)
    return stored


def _store_file(
    delivery: Delivery,
    store: Store,
    folder: Path,
    ratio: float,
    number: int,
    *,
    kept: Mapping[str, Path] = MappingProxyType({}),
    converting: AbstractContextManager | None = None,
    on_bytes: Callable[[int], None] = lambda count: None,
) -> RawFile:
    """Fetch file `number` of a delivery (from 0) and convert it into `folder`; returns its record."""
    from pipelines.ingest.billing.convert import convert_file
    from pipelines.ingest.billing.unpack import Allowance

    item = delivery.objects[number]
    out = folder / f"part-{delivery.fingerprint[:16]}-{number + 1:05d}.parquet"
    delivered = out.with_suffix(".delivered")
    _fetch(item, store, delivered, kept.get(item.key))
    seal = sha256_of(delivered.open("rb"))
    file = convert_file(
        delivered,
        out,
        key=item.key,
        allowed=Allowance(store.uri(item.key), item.size, ratio),
        listed=delivery.listed,
        converting=converting or nullcontext(),
        on_bytes=on_bytes,
    )
    return replace(file, sha256=seal)


def ingest_in_store(
    delivery: Delivery, source: BillingSource, raw_root: Path, target: Store, engine: Engine
) -> RawDelivery:
    """Store a delivery in the raw store of the bucket `target`, by the executors of an engine.

    Each executor fetches and converts whole files as `ingest` does; the engine compares lines of several files.
    """
    from pipelines.ingest.billing.convert import refuse_copies
    from pipelines.ingest.billing.repeats import with_repeats

    store = Stores().open(source.location, **source.reach)
    _refuse_missing(delivery, store)
    folder = delivery.folder(raw_root)
    prefix = f"raw/{folder.relative_to(raw_root).as_posix()}"
    move = partial(_store_away, delivery, store, target, prefix, source.unpack_ratio)
    made = engine.map(move, range(len(delivery.objects)))
    files = tuple(file for file, _, _ in made)
    contents = {file.key: content for file, content, _ in made}
    refuse_copies(files, lambda file: contents[file.key], store.uri, is_bare=delivery.is_bare)
    with_ids = [file.name for file, _, has_ids in made if has_ids]
    files = with_repeats(
        files, delivery.listed.billed, with_ids, engine, lambda name: target.uri(f"{prefix}/{name}"), store.uri
    )
    for item in target.list(f"{prefix}/ids/"):
        target.delete(item.key)
    return RawDelivery(delivery, folder, files, converter_of(delivery.listed))


def _store_away(
    delivery: Delivery, store: Store, target: Store, prefix: str, ratio: float, number: int
) -> tuple[RawFile, str, bool]:
    """Store a delivered file in the bucket; its record, the sha256 as stored, and whether its lines have ids."""
    from pipelines.ingest.billing.repeats import write_ids_of

    with TemporaryDirectory(prefix="trainledger-") as scratch:
        folder = Path(scratch)
        file = _store_file(delivery, store, folder, ratio, number)
        ids = folder / "ids" / file.name
        if has_ids := write_ids_of(folder / file.name, ids):
            target.upload(ids, f"{prefix}/ids/{file.name}")
        content = sha256_of((folder / file.name).open("rb"))
        target.upload(folder / file.name, f"{prefix}/{file.name}")
    return file, content, has_ids


def _fetch(item: Object, store: Store, delivered: Path, kept: Path | None) -> None:
    if kept is None:
        store.download(item.key, delivered)
    else:
        try:
            os.link(kept, delivered)
        except OSError:
            # Some file systems have no links.
            shutil.copyfile(kept, delivered)
    if (size := delivered.stat().st_size) != item.size:
        raise SourceError(f"{store.uri(item.key)} changed while it was read; run again when its delivery has finished.")
    if size == 0:
        raise SourceError(f"{store.uri(item.key)} is empty; have it delivered again.")


def _move(temporary: Path, folder: Path, converter: str) -> None:
    try:
        temporary.rename(folder)
    except OSError:
        stored = load(folder)
        if stored and stored.converter == converter:
            # Another build has stored the same delivery meanwhile: the same bytes.
            return
        # Damaged, or converted by other code. Moved away first: a reader finds the old folder or the new one.
        old = folder.with_name(f".{folder.name}.old.{os.getpid()}.tmp")
        folder.rename(old)
        temporary.rename(folder)
        shutil.rmtree(old)


def _sweep(folder: Path) -> None:
    """Remove what a killed ingest left behind."""
    for leftover in folder.glob(".*.tmp"):
        pid = int(leftover.suffixes[-2][1:])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            shutil.rmtree(leftover, ignore_errors=True)
        except PermissionError:
            continue
