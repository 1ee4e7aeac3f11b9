"""Bill files without a manifest (`files` of a [[billing]] entry): one delivery per billing month of their lines."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.config.sources import BillingSource
from pipelines.ingest.billing.columns import snake
from pipelines.ingest.billing.manifest import Manifest, ManifestPath, exports_in, read_cached
from pipelines.warehouse.storage import Object, Store

# What a bill's file is called, by its end.
SUFFIXES = (".parquet", ".csv", ".csv.gz", ".csv.zip")
# A folder that names its month, as AWS and Athena write them.
_MONTH = re.compile(
    r"BILLING_PERIOD=(\d{4}-\d{2})|(?:^|/)(\d{4})(\d{2})\d{2}-\d{8}/|year=(\d{4})/month=(\d{1,2})\b", re.I
)
# The month of a line, by the first of these columns that a file has.
_PERIODS = ("bill_billing_period_start_date", "billing_period_start", "billingperiodstart")
_USES = ("line_item_usage_start_date", "charge_period_start", "chargeperiodstart")


def read_bare(source: BillingSource, listing: Sequence[Object], store: Store, cache: Path) -> list[Manifest]:
    """The files that match `source.files`, as if each billing month had a manifest of them.

    A file belongs to the month its folder names, else to the first billing month of its lines; each new file is read
    once for that. Raises SourceError where none matches, or where manifests name which of them are current.
    """
    assert source.files is not None
    items = [item for item in listing if fnmatchcase(item.key, source.files)]
    for export in exports_in(listing):
        if any(item.key.startswith(f"{export.root}/".lstrip("/")) for item in items):
            raise SourceError(
                f"{store.location} holds the manifests of {export.export}, which name its current files; remove "
                f"`files` from the [[billing]] entry and point location at {store.uri(export.root).rstrip('/')}."
            )
    if not items:
        raise SourceError(
            f"{store.location} holds no file that matches files = {source.files!r} ({len(listing):,} files listed); "
            'write a pattern such as "*.parquet".'
        )
    looks = {key: parse_json(text) for key, text in read_cached(items, lambda item: _look(item, store), cache).items()}
    months: dict[str, list[Object]] = {}
    for item in items:
        months.setdefault(looks[item.key]["month"], []).append(item)
    return [_delivered(source, month, its, looks[its[0].key]["columns"]) for month, its in sorted(months.items())]


def _delivered(source: BillingSource, month: str, items: Sequence[Object], columns: Sequence[str]) -> Manifest:
    text = json.dumps([[item.key, item.size] for item in items])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = ManifestPath(items[0], "", source.name, month)
    return Manifest(path, text, "cur2", f"files-{digest}", tuple(item.key for item in items), tuple(columns))


def _look(item: Object, store: Store) -> str:
    """The billing month and the columns of a file, as JSON."""
    named = _MONTH.search(item.key)
    with TemporaryDirectory(prefix="trainledger-") as scratch:
        path = Path(scratch) / "file"
        store.download(item.key, path)
        columns, starts = _columns_and_starts(path, store.uri(item.key), item.size)
    if named:
        year_and_month = [part for part in named.groups() if part]
        month = "-".join(part.zfill(2) for part in year_and_month)
    else:
        month = min((start[:7] for start in starts if start), default="")
    if not named and not _dated(columns):
        raise SourceError(
            f"{store.uri(item.key)} is no bill: it has no column of a billing period or of when use started. Leave it "
            "out of `files`, or move it out of the bill's folder."
        )
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise SourceError(
            f"{store.uri(item.key)}: its billing month is unknown, for no line of it has a start date; put it into a "
            "folder such as BILLING_PERIOD=2026-07, or leave it out of `files`."
        )
    return json.dumps({"month": month, "columns": columns})


def _columns_and_starts(path: Path, where: str, size: int) -> tuple[list[str], list[str | None]]:
    """The columns of a delivered file, and the distinct days its lines are billed for."""
    # Read where a file is new only.
    import pyarrow as pa
    from pyarrow import compute, csv, parquet

    from pipelines.base.limits import UNPACK_RATIO
    from pipelines.ingest.billing.unpack import PARQUET, Allowance, magic, read_header, unpacked

    try:
        if magic(path) == PARQUET:
            columns = parquet.read_schema(path).names
            dated = _dated(columns)
            found = parquet.read_table(path, columns=[dated]).column(0) if dated else None
        else:
            allowed = Allowance(where, size, UNPACK_RATIO)
            columns, _ = read_header(path, allowed)
            dated, found = _dated(columns), None
            if dated:
                options = csv.ConvertOptions(include_columns=[dated], column_types={dated: pa.string()})
                lines = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda row: "skip")
                with unpacked(path, allowed) as stream:
                    found = csv.read_csv(stream, parse_options=lines, convert_options=options).column(0)
    except pa.ArrowException as error:
        raise SourceError(f"{where} is not a bill's csv or Parquet file ({error}); leave it out of `files`.") from None
    days = compute.unique(found.cast(pa.string())).to_pylist() if found is not None else []  # pyright: ignore
    return columns, days


def _dated(columns: Sequence[str]) -> str | None:
    names = {snake(column): column for column in reversed(columns)}
    return next((names[name] for name in (*_PERIODS, *_USES) if name in names), None)
