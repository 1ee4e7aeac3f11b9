"""A delivery of a billing month, before and after it is in the raw store."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.base.paths import below
from pipelines.ingest.billing.columns import CUR, FOCUS, ColumnList, Delivered, RawFile, TagKey
from pipelines.warehouse.storage import Object

RECORD = "delivery.json"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
# What the files of a delivery mostly share.
_LAYOUT = ("columns", "tag_keys")

Kind = Literal["cur", "cur2", "focus"]


@dataclass(frozen=True)
class Delivery:
    """One billing month ('YYYY-MM') as the current manifest of an export names it.

    `delivery_id` is AWS's assemblyId or executionId; `fingerprint` (64 hex) changes when the manifest does, or a
    file that is stored was replaced; `missing` are files the manifest names that are not there; keys are relative to
    the source's location; `is_gone` where the source has its manifest no more.
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

    @property
    def listed(self) -> ColumnList:
        """The columns we read of it."""
        return column_list(self.kind)

    def folder(self, raw_root: Path) -> Path:
        """The folder of its files in the raw store."""
        return below(raw_root, delivery_folder(self.source, self.billing_period, self.fingerprint))


@dataclass(frozen=True)
class RawDelivery:
    """A delivery in the raw store: its Parquet files below `folder`, one per delivered file.

    `converter` is the digest of the code and the list of columns that made them of what was delivered.
    """

    delivery: Delivery
    folder: Path
    files: tuple[RawFile, ...]
    converter: str

    def path(self, file: RawFile) -> Path:
        """The path of one of its files."""
        return below(self.folder, file.name)

    @property
    def line_count(self) -> int:
        """Bill lines in all its files."""
        return sum(file.line_count for file in self.files)

    @property
    def billed_total(self) -> Decimal:
        """The billed total of all its lines, currencies added as plain numbers."""
        return sum((file.billed_total for file in self.files), Decimal(0))

    @property
    def warnings(self) -> list[str]:
        """What was read as missing, one sentence each."""
        empty = [] if self.line_count else [f"{self.delivery.manifest_key} contains no line; the month is empty."]
        return [*empty, *(warning for file in self.files for warning in file.warnings)]


def delivery_folder(source: str, billing_period: str, fingerprint: str) -> str:
    """The folder of a delivery, relative to the raw store."""
    return f"{source}/{billing_period}/{fingerprint[:16]}"


def column_list(kind: Kind) -> ColumnList:
    """The columns we read of an export of this kind."""
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


def load(folder: Path) -> RawDelivery | None:
    """The delivery stored in `folder`; None where it is missing, incomplete or of another folder."""
    try:
        record = parse_json((folder / RECORD).read_text(encoding="utf-8"))
        body = record["delivery"]
        objects = tuple(_object(item) for item in body["objects"])
        delivery = Delivery(**{**body, "objects": objects, "missing": tuple(body["missing"])})
        # An older version wrote a layout with every file.
        layouts = [_layout(item) for item in record.get("layouts", ())]
        files = tuple(_file(item, layouts) for item in record["files"])
        raw = RawDelivery(delivery, folder, files, str(record.get("converter", "")))
        # Its fingerprint becomes part of SQL.
        is_ours = _FINGERPRINT.fullmatch(delivery.fingerprint) and delivery.folder(folder.parents[2]) == folder
        is_whole = is_ours and all(raw.path(file).stat().st_size == file.size for file in files)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, SourceError):
        # Damaged, or not written by this version.
        return None
    return raw if is_whole else None


def _object(item: dict) -> Object:
    return Object(**{**item, "modified_at": datetime.fromisoformat(item["modified_at"])})


def _layout(item: dict) -> dict[str, Any]:
    return {
        "columns": tuple(Delivered(**column) for column in item["columns"]),
        "tag_keys": tuple(TagKey(**key) for key in item["tag_keys"]),
    }


def _file(item: dict, layouts: list[dict[str, Any]]) -> RawFile:
    layout = layouts[item["layout"]] if "layout" in item else _layout(item)
    own = {name: value for name, value in item.items() if name not in ("layout", *_LAYOUT)}
    exact = {"billed_total": Decimal(own["billed_total"]), "warnings": tuple(own["warnings"])}
    return RawFile(**{**own, **layout, **exact})
