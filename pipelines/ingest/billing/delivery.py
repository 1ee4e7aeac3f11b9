"""A delivery of a billing month, before and after it is in the raw store."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.base.paths import below
from pipelines.ingest.billing.columns import CUR, FOCUS, NEWEST, ColumnList, RawFile, is_newer
from pipelines.warehouse.storage import Object

RECORD = "delivery.json"
# The record of a delivery that another has replaced, next to the folder it had.
SUPERSEDED = re.compile(r"[0-9a-f]{16}\.json")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
# What the files of a delivery mostly share.
_LAYOUT = ("columns", "tag_keys")

Kind = Literal["cur", "cur2", "focus"]
Map = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""What a function makes of each item, in their order: here, or on the executors of a cluster."""


@dataclass(frozen=True)
class Delivery:
    """One billing month ('YYYY-MM') as the current manifest of an export names it.

    `delivery_id` is AWS's assemblyId or executionId; `fingerprint` (64 hex) changes when the manifest does, or a
    file that is stored was replaced; `missing` are files the manifest names that are not there; keys are relative to
    the source's location; `is_gone` where the source has its manifest no more; `focus_version` as metadata declare it.
    """

    source: str
    billing_period: str
    delivery_id: str
    kind: Kind
    manifest_key: str
    objects: tuple[Object, ...]
    missing: tuple[str, ...]
    fingerprint: str
    is_gone: bool = False
    focus_version: str = ""

    @property
    def listed(self) -> ColumnList:
        return column_list(self.kind)

    @property
    def is_bare(self) -> bool:
        """Whether no manifest names its files: one of them stands for it."""
        return any(item.key == self.manifest_key for item in self.objects)

    def folder(self, raw_root: Path) -> Path:
        return below(raw_root, delivery_folder(self.source, self.billing_period, self.fingerprint))


@dataclass(frozen=True)
class RawDelivery:
    """A delivery in the raw store: its Parquet files below `folder`, one per delivered file.

    `converter` is the digest of the code and the list of columns that made them of what was delivered.
    """

    delivery: Delivery
    folder: Path
    files: tuple[RawFile, ...]
    converter: str = ""

    @property
    def is_here(self) -> bool:
        """Whether all its files are on this machine."""
        stored = ((self.path(file), file.size) for file in self.files)
        return all(path.is_file() and path.stat().st_size == size for path, size in stored)

    def path(self, file: RawFile) -> Path:
        return below(self.folder, file.name)

    @property
    def line_count(self) -> int:
        return sum(file.line_count for file in self.files)

    @property
    def billed_total(self) -> Decimal:
        """The billed total of all its lines, currencies added as plain numbers."""
        return sum((file.billed_total for file in self.files), Decimal(0))

    @property
    def focus_versions(self) -> set[str]:
        """The versions of FOCUS its files are of by their columns; none of another kind of bill."""
        return {file.focus_version for file in self.files if file.focus_version}

    @property
    def warnings(self) -> list[str]:
        """What was read as missing, one sentence each."""
        manifest, declared = self.delivery.manifest_key, self.delivery.focus_version
        versions, found = sorted(self.focus_versions), []
        if not self.line_count:
            found.append(f"{manifest} contains no line; the month is empty. Check the export if it was used.")
        if len(versions) > 1:
            found.append(f"{manifest} has files of FOCUS {' and '.join(versions)}. Remove what is left over.")
        if declared and versions and declared not in versions:
            fix = ", by its columns. Check that the metadata belong to it."
            if is_newer(declared):
                newer = "Check whether a newer version of trainledger reads all of it."
                fix = f"; versions after {NEWEST} are not known. {newer}"
            found.append(f"{manifest} is declared as FOCUS {declared} and read as {versions[-1]}{fix}")
        return [*found, *(warning for file in self.files for warning in file.warnings)]


def delivery_folder(source: str, billing_period: str, fingerprint: str) -> str:
    return f"{source}/{billing_period}/{fingerprint[:16]}"


def column_list(kind: Kind) -> ColumnList:
    return FOCUS if kind == "focus" else CUR


def save(raw: RawDelivery, folder: Path) -> None:
    """Write the record that marks a delivery as wholly stored; `folder` may still be a temporary one."""
    # Files of a delivery mostly have the same columns and tags, which would be most of the record.
    layouts: dict[tuple, int] = {}
    files = []
    for file in raw.files:
        layout = layouts.setdefault((file.columns, file.tag_keys), len(layouts))
        files.append({name: value for name, value in vars(file).items() if name not in _LAYOUT} | {"layout": layout})
    shared = [{"columns": list(map(vars, columns)), "tag_keys": list(map(vars, tags))} for columns, tags in layouts]
    record = {"delivery": asdict(raw.delivery), "layouts": shared, "files": files, "converter": raw.converter}
    (folder / RECORD).write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")


def load(folder: Path, *, is_whole: bool = True) -> RawDelivery | None:
    """The delivery stored in `folder`; None where it is missing, incomplete or of another folder.

    Without `is_whole` its record is enough: the files may be elsewhere.
    """
    try:
        record = parse_json((folder / RECORD).read_text(encoding="utf-8"))
        files = [file | record["layouts"][file["layout"]] for file in record["files"]]
        raw = _RAW.validate_python(record | {"folder": folder, "files": files})
        # Its fingerprint becomes part of SQL.
        is_ours = _FINGERPRINT.fullmatch(raw.delivery.fingerprint) and raw.delivery.folder(folder.parents[2]) == folder
        return raw if is_ours and (not is_whole or raw.is_here) else None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, LookupError, TypeError, SourceError):
        # Missing, damaged, or not written by this version.
        return None


def save_superseded(delivery: Delivery, raw_root: Path) -> Path:
    """Write where the files of a delivery lie, of which the raw store keeps none; returns the file."""
    path = _superseded_path(delivery.folder(raw_root))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(delivery), indent=1, default=str) + "\n", encoding="utf-8")
    return path


def superseded(folder: Path) -> Delivery | None:
    """The delivery that was stored in `folder`, as `save_superseded` wrote it; None without."""
    try:
        return _DELIVERY.validate_python(parse_json(_superseded_path(folder).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def _superseded_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


_RAW, _DELIVERY = TypeAdapter(RawDelivery), TypeAdapter(Delivery)
