"""Manifests: which deliveries an export holds, and which files make up each. Nothing else of it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.base.paths import unsafe
from pipelines.ingest.billing.delivery import Kind
from pipelines.ingest.billing.manifest_content import read_content
from pipelines.warehouse.storage import Object, Store

# The manifest of a month lies in that month's folder; copies inside an assembly's folder are history.
_CURRENT = re.compile(
    r"(?P<base>(?:[^/]+/)?)"
    r"(?:metadata/BILLING_PERIOD=(?P<partition>\d{4}-\d{2})|(?P<year>\d{4})(?P<month>\d{2})\d{2}-\d{8})"
    r"/(?P<export>[^/]+)-Manifest\.json",
    re.IGNORECASE,
)
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<bucket>[^/]*)/(?P<key>.*)", re.DOTALL)
CACHE = "manifests.json"
# Of ten thousand files a manifest is some 3 MB.
_MANIFEST_BYTES = 64 << 20
# Times that a name may be URL-encoded.
_MOST_ENCODINGS = 4
# Reading one waits on the network.
_READ_AT_ONCE = 4


@dataclass(frozen=True)
class Place:
    """Where a current manifest lies: the export's folder, its name, and the billing month of the path."""

    object: Object
    base: str
    export: str
    period: str


@dataclass(frozen=True)
class Manifest:
    """A manifest as read: the files it names, as keys of the store, and its columns if it lists them.

    `kind` is what its form says: Data Exports names data files, a legacy report its keys.
    """

    place: Place
    text: str
    kind: Kind
    delivery_id: str
    files: tuple[str, ...]
    columns: tuple[str, ...]


def find_manifests(listing: Sequence[Object], store: Store, export: str | None = None) -> list[Place]:
    """The current manifest of each billing month in a listing of the export's root, of the export so named if given.

    Raises SourceError when there is none, when the folder holds more than one export, or two for one month.
    """
    places = []
    for item in listing:
        if found := _CURRENT.fullmatch(item.key):
            period = found["partition"] or f"{found['year']}-{found['month']}"
            if export in (None, found["export"]):
                _refuse_no_month(period, item, store)
                places.append(Place(item, found["base"], found["export"], period))
    exports = sorted({f"{place.base}{place.export}" for place in places})
    if not exports and export is not None:
        raise SourceError(f"{store.location} holds no manifest of an export {export!r}; check `export` in its entry.")
    if not exports:
        raise SourceError(
            f"{store.location} holds no billing manifest; point location at the folder with data/ and "
            "metadata/, or with one folder per billing period."
        )
    if len(exports) > 1:
        raise SourceError(
            f"{store.location} holds {len(exports)} exports ({', '.join(exports)}); "
            "give each its own [[billing]] entry with its own location, or with its `export` by name."
        )
    _refuse_second_manifests(places, store)
    return places


def read_manifests(places: Sequence[Place], listing: Sequence[Object], store: Store, cache: Path) -> list[Manifest]:
    """The manifests, read from the store only where they changed since `cache`, a folder, was written."""
    path = cache / CACHE
    known = _known(path)
    changed = [place.object for place in places if not _is_of(known.get(place.object.key), place.object)]
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        texts = dict(zip(changed, pool.map(lambda item: _text(store, item), changed), strict=True))
    fresh = {
        place.object.key: {"etag": place.object.etag, "text": texts[place.object]}
        if place.object in texts
        else known[place.object.key]
        for place in places
    }
    present = {item.key for item in listing}
    manifests = [_parse(place, fresh[place.object.key]["text"], present, store) for place in places]
    _refuse_shared_files(manifests, store)
    if fresh != known:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{CACHE}.partial")
        partial.write_text(json.dumps(fresh), encoding="utf-8")
        partial.replace(path)
    return manifests


def _known(cache: Path) -> dict[str, Any]:
    """What was read before; a cache that is damaged is as good as none."""
    try:
        known = parse_json(cache.read_text(encoding="utf-8")) if cache.is_file() else {}
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def _is_of(kept: Any, manifest: Object) -> bool:
    """Whether the cache has this manifest as it is now."""
    return isinstance(kept, dict) and kept.get("etag") == manifest.etag and isinstance(kept.get("text"), str)


def _text(store: Store, item: Object) -> str:
    where = store.uri(item.key)
    if item.size > _MANIFEST_BYTES:
        raise SourceError(
            f"{where} has {item.size:,} bytes where a manifest has at most {_MANIFEST_BYTES:,}; fetch it from the "
            "export again."
        )
    try:
        return store.read(item.key).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{where} is not UTF-8 text; fetch the manifest from the export again.") from None


def _refuse_second_manifests(places: Sequence[Place], store: Store) -> None:
    """Each delivers its whole month: of two, one is stale or would count double, and nothing tells which."""
    first: dict[str, Place] = {}
    for place in places:
        other = first.setdefault(place.period, place)
        if other is not place:
            keys = sorted((other.object.key, place.object.key))
            raise SourceError(
                f"{' and '.join(map(store.uri, keys))} both deliver {place.period}; keep the one of the export as it "
                "is now and move the other one out."
            )


def _refuse_no_month(period: str, item: Object, store: Store) -> None:
    try:
        date.fromisoformat(f"{period}-01")
    except ValueError:
        raise SourceError(
            f"{store.uri(item.key)} lies in the folder of {period}, which is no month; put it back where the export "
            "wrote it, or move it out."
        ) from None


def _refuse_shared_files(manifests: Sequence[Manifest], store: Store) -> None:
    """A file named twice, by one manifest or by those of two months, would count double."""
    named: dict[str, Place] = {}
    for manifest in manifests:
        for file in manifest.files:
            if file in named:
                where, other = (store.uri(place.object.key) for place in (manifest.place, named[file]))
                twice = "twice" if other == where else f"and so does {other}"
                raise SourceError(f"{where} names {file} {twice}; its lines would count double, so fetch it again.")
            named[file] = manifest.place


def _parse(place: Place, text: str, present: set[str], store: Store) -> Manifest:
    told = read_content(text, place.period, store.uri(place.object.key))
    files = tuple(_resolve(name, told.bucket, place, present, store) for name in told.names)
    return Manifest(place, text, told.kind, told.delivery_id, files, told.columns)


def _resolve(name: str, bucket: str | None, place: Place, present: set[str], store: Store) -> str:
    """The store's key of a file a manifest names; refused when it lies outside the export's root."""
    uri = _URI.fullmatch(name)
    if uri and uri["scheme"].lower() != "s3":
        raise _outside(name, place, store, "which is not an S3 address")
    bucket = uri["bucket"] if uri else bucket
    path = (uri["key"] if uri else name).removeprefix("/")
    steps = path.split("/")
    if any(_misleads(step) for step in steps):
        raise _outside(name, place, store, "which is no plain path")
    if not store.location.startswith("s3://"):
        return _below_folder(name, steps, place, present, store)
    root_bucket, _, prefix = store.location.removeprefix("s3://").partition("/")
    prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    if bucket not in (None, root_bucket):
        raise _outside(name, place, store, f"which is in bucket {bucket}")
    if not path.startswith(prefix + place.base):
        raise _outside(name, place, store, "which is not below it")
    return path.removeprefix(prefix)


def _misleads(step: str) -> bool:
    """Whether a part of a path may lead elsewhere for anybody who reads it, or is URL-encoded again and again."""
    for _ in range(_MOST_ENCODINGS):
        step = unquote(step)
    return step != unquote(step) or unsafe(step) is not None or not step.isprintable() or "/" in step


def _below_folder(name: str, steps: list[str], place: Place, present: set[str], store: Store) -> str:
    """A copied export keeps its layout, not its bucket: take the path after the export's name.

    Where the name is no folder of the path, take it from the export's own first folder on.
    """
    month = place.object.key.removeprefix(place.base).split("/")[0]
    anchor = "data" if month.lower() == "metadata" else month
    starts = [at + 1 for at, step in enumerate(steps[:-1]) if step == place.export]
    starts += [at for at, step in enumerate(steps[:-1]) if step == anchor]
    found = [place.base + "/".join(steps[start:]) for start in starts]
    if not found:
        raise _outside(name, place, store, f"which is not below {place.export}")
    return next((key for key in found if key in present), found[0])


def _outside(name: str, place: Place, store: Store, why: str) -> SourceError:
    return SourceError(
        f"{store.uri(place.object.key)} names {name[:300]}, {why}; nothing outside {store.location} is read, "
        "so point location at the export's own root."
    )
