"""Manifests: the deliveries of an export, and the files of each. No other file is read."""

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from pydantic import TypeAdapter

from pipelines.base.address import bucket_and_prefix, is_s3
from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json, reading
from pipelines.base.paths import unsafe
from pipelines.ingest.billing.columns import declared_version
from pipelines.ingest.billing.delivery import Kind, Map
from pipelines.warehouse.storage import Object, Store, fresh_file

# The manifest of a month is in that month's folder; copies inside an assembly's folder are history.
_CURRENT = re.compile(
    r"(?P<base>(?:[^/]+/)?)"
    r"(?:metadata/BILLING_PERIOD=(?P<partition>\d{4}-\d{2})|(?P<year>\d{4})(?P<month>\d{2})\d{2}-\d{8})"
    r"/(?P<export>[^/]+)-Manifest\.json",
    re.IGNORECASE,
)
# The same below any folder: where the root of an export is.
_ANYWHERE = re.compile(r"(?:(?P<root>.+?)/)??" + _CURRENT.pattern.replace(r"(?P<base>(?:[^/]+/)?)", ""), re.IGNORECASE)
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<bucket>[^/]*)/(?P<key>.*)", re.DOTALL)
CACHE = "manifests.json"
_AGAIN = "fetch it from the export again"
# Of ten thousand files a manifest is some 3 MB.
_MANIFEST_BYTES = 64 << 20
# Times that a name may be URL-encoded.
_MOST_ENCODINGS = 4
# A listing of years, or a file that is read, takes some memory.
_AT_ONCE = 4


@dataclass(frozen=True)
class ManifestPath:
    """A current manifest: its object, the export's folder and name, and the billing month of the path."""

    object: Object
    base: str
    export: str
    period: str


@dataclass(frozen=True)
class Manifest:
    """A manifest as read: the files it names, as keys of the store, and its columns if it lists them.

    `kind` follows from its form: Data Exports names data files, a legacy report its keys. `focus_version` is the one
    that metadata declare, which AWS's do not.
    """

    path: ManifestPath
    text: str
    kind: Kind
    delivery_id: str
    files: tuple[str, ...]
    columns: tuple[str, ...]
    focus_version: str = ""


class Export(NamedTuple):
    """An export found by its manifests: its root, relative to the listed folder, and its name."""

    root: str
    export: str


def exports_in(listing: Sequence[Object]) -> list[Export]:
    """The exports whose current manifests lie at any level of a listing, by root and name."""
    matches = [_ANYWHERE.fullmatch(item.key) for item in listing]
    return sorted({Export(match["root"] or "", match["export"]) for match in matches if match})


def find_manifests(listing: Sequence[Object], store: Store, export: str | None = None) -> list[ManifestPath]:
    """The current manifest of each billing month in a listing of the export's root, of `export` if set.

    Raises SourceError when there is none, when the folder holds more than one export, or two for one month.
    """
    paths: list[ManifestPath] = []
    for item in listing:
        found = _CURRENT.fullmatch(item.key)
        if found and export in (None, found["export"]):
            paths.append(ManifestPath(item, found["base"], found["export"], _month(found, item, store)))
    exports = {f"{path.base}{path.export}" for path in paths}
    if not exports and export is not None:
        raise SourceError(f"{store.location} holds no manifest of an export {export!r}; check `export` in its entry.")
    if not exports:
        below = exports_in(listing)
        fix = "point location at the folder with data/ and metadata/, or with one folder per billing period"
        if below:
            fix = f"manifests were found below {below[0].root}, so point location at {store.uri(below[0].root)}"
        elif listing:
            fix += ', or name bare files by `files`, such as files = "*.parquet"'
        raise SourceError(f"{store.location} holds no billing manifest; {fix}.")
    if len(exports) > 1:
        fix = "give each its own [[billing]] entry with its own location"
        if len({path.export for path in paths}) == len(exports):
            fix += ", or with its `export` by name"
        raise SourceError(f"{store.location} holds {len(exports)} exports ({', '.join(sorted(exports))}); {fix}.")
    first = {path.period: path for path in reversed(paths)}
    if twice := next(((first[path.period], path) for path in paths if first[path.period] is not path), None):
        # Each delivers its whole month: one is stale or would count double, and it is unknown which.
        names = " and ".join(sorted(store.uri(path.object.key) for path in twice))
        fix = "keep the one of the export as it is now and move the other one out"
        raise SourceError(f"{names} both deliver {twice[0].period}; {fix}.")
    return paths


def read_manifests(
    paths: Sequence[ManifestPath], listing: Sequence[Object], store: Store, cache: Path
) -> list[Manifest]:
    """The manifests, read from the store only where they changed since `cache`, a folder, was written."""
    texts = read_cached([path.object for path in paths], lambda item: _text(store, item), cache)
    present = {item.key for item in listing}
    manifests = [_parse(path, texts[path.object.key], present, store) for path in paths]
    _refuse_shared_files(manifests, store)
    return manifests


def in_threads(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """What a function that waits on the network returns for each item, in their order; some are worked on at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, items))


def read_cached(
    items: Sequence[Object], read: Callable[[Object], str], cache: Path, run: Map = in_threads
) -> dict[str, str]:
    """What `read` returns for each object, by key; called where it changed since the folder `cache` was written.

    `run` calls it for several objects, here or on executors.
    """
    file = cache / CACHE
    try:
        known = TypeAdapter(dict[str, tuple[str, str]]).validate_json(file.read_bytes())
    except (FileNotFoundError, ValueError):
        # Nothing was read before, or the file is damaged.
        known = {}
    changed = [item for item in items if known.get(item.key, ("",))[0] != item.etag]
    texts = dict(zip([item.key for item in changed], run(read, changed), strict=True)) if changed else {}
    fresh = {item.key: (item.etag, texts[item.key]) if item.key in texts else known[item.key] for item in items}
    if fresh != known:
        with fresh_file(file) as partial:
            partial.write_text(json.dumps(fresh), encoding="utf-8")
    return {key: text for key, (_, text) in fresh.items()}


def _text(store: Store, item: Object) -> str:
    where = store.uri(item.key)
    if item.size > _MANIFEST_BYTES:
        raise SourceError(f"{where} has {item.size:,} bytes, a manifest at most {_MANIFEST_BYTES:,}; {_AGAIN}.")
    try:
        return store.read(item.key).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{where} is not UTF-8 text; {_AGAIN}.") from None


def _month(found: re.Match[str], item: Object, store: Store) -> str:
    period = found["partition"] or f"{found['year']}-{found['month']}"
    try:
        date.fromisoformat(f"{period}-01")
    except ValueError:
        fix = "put it back where the export wrote it, or move it out"
        raise SourceError(f"{store.uri(item.key)} is in the folder of {period}, which is not a month; {fix}.") from None
    return period


def _refuse_shared_files(manifests: Sequence[Manifest], store: Store) -> None:
    """A file named twice, by one manifest or by those of two months, would count double."""
    named: dict[str, ManifestPath] = {}
    for manifest in manifests:
        for file in manifest.files:
            if file in named:
                where, other = (store.uri(path.object.key) for path in (manifest.path, named[file]))
                twice = "twice" if other == where else f"and so does {other}"
                raise SourceError(f"{where} names {file} {twice}; its lines would count double, so fetch it again.")
            named[file] = manifest.path


def _resolve(name: str, bucket: str | None, path: ManifestPath, present: set[str], store: Store) -> str:
    """The store's key of a file a manifest names; refused when it is outside the export's root."""
    uri = _URI.fullmatch(name)
    if uri and uri["scheme"].lower() != "s3":
        raise _outside(name, path, store, "which is not an S3 address")
    bucket = uri["bucket"] if uri else bucket
    key = (uri["key"] if uri else name).removeprefix("/")
    steps = key.split("/")
    if any(_misleads(step) for step in steps):
        raise _outside(name, path, store, "which is not a plain path")
    if not is_s3(store.location):
        return _below_folder(name, steps, path, present, store)
    root_bucket, prefix = bucket_and_prefix(store.location)
    prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    if bucket not in (None, root_bucket):
        raise _outside(name, path, store, f"which is in bucket {bucket}")
    if not key.startswith(prefix + path.base):
        raise _outside(name, path, store, "which is not below it")
    return key.removeprefix(prefix)


def _misleads(step: str) -> bool:
    """Whether a part of a path may lead elsewhere, or is URL-encoded several times."""
    for _ in range(_MOST_ENCODINGS):
        step = unquote(step)
    return step != unquote(step) or unsafe(step) is not None or not step.isprintable() or "/" in step


def _below_folder(name: str, steps: list[str], path: ManifestPath, present: set[str], store: Store) -> str:
    """A copied export keeps its layout, not its bucket: take the path after the export's name.

    Where the name is not a folder of the path, take it from the export's own first folder on.
    """
    month = path.object.key.removeprefix(path.base).split("/")[0]
    anchor = "data" if month.lower() == "metadata" else month
    starts = [at + 1 for at, step in enumerate(steps[:-1]) if step == path.export]
    starts += [at for at, step in enumerate(steps[:-1]) if step == anchor]
    found = [path.base + "/".join(steps[start:]) for start in starts]
    if not found:
        raise _outside(name, path, store, f"which is not below {path.export}")
    return next((key for key in found if key in present), found[0])


def _outside(name: str, path: ManifestPath, store: Store, why: str) -> SourceError:
    fix = f"nothing outside {store.location} is read, so point location at the export's own root"
    return SourceError(f"{store.uri(path.object.key)} names {name[:300]}, {why}; {fix}.")


def _parse(path: ManifestPath, text: str, present: set[str], store: Store) -> Manifest:
    """The manifest at `path`. SourceError when it is none, or one of another month."""
    where = store.uri(path.object.key)
    with reading(where, _AGAIN):
        content = parse_json(text)
    if not isinstance(content, dict):
        raise SourceError(f"{where} is not a JSON object; {_AGAIN}.")
    names = content.get("dataFiles", content.get("reportKeys"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SourceError(f"{where} has no list dataFiles or reportKeys of file names; it is not a billing manifest.")
    delivery_id = content.get("executionId") or content.get("assemblyId")
    if not isinstance(delivery_id, str):
        raise SourceError(f"{where} has neither executionId nor assemblyId; {_AGAIN}.")
    if not delivery_id.isprintable() or not delivery_id.strip():
        raise SourceError(f"{where} has the delivery id {delivery_id!a}, which is not printable; {_AGAIN}.")
    columns = content.get("columns") or []
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        raise SourceError(f"{where} has `columns` that are not a list of columns; {_AGAIN}.")
    _check_period(content.get("billingPeriod"), path.period, where)
    return Manifest(
        path,
        text,
        kind="cur2" if "dataFiles" in content else "cur",
        delivery_id=delivery_id,
        files=tuple(_resolve(name, content.get("bucket") or None, path, present, store) for name in names),
        columns=tuple(
            f"{one['category']}/{one.get('name')}" if one.get("category") else str(one.get("name")) for one in columns
        ),
        focus_version=declared_version(content),
    )


def _check_period(dates: Any, period: str, where: str) -> None:
    """A legacy manifest has its period as two dates; one of Data Exports has none."""
    start, end = (dates.get("start"), dates.get("end")) if isinstance(dates, dict) else (None, None)
    first, after = (re.sub(r"\D", "", at)[:8] if isinstance(at, str) else "" for at in (start, end))
    if first and f"{first[:4]}-{first[4:6]}" != period:
        fix = "put it back where the export wrote it"
        raise SourceError(f"{where} is for the billing period from {start} but is in the folder of {period}; {fix}.")
    if first and after and after <= first:
        raise SourceError(f"{where} is for a billing period from {start} to {end}; {_AGAIN}.")
