"""Bill files without a manifest (`files` of a [[billing]] entry): one delivery per billing month of their lines."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.base.errors import SourceError, counted
from pipelines.base.groups import grouped
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import BillingSource
from pipelines.ingest.billing.columns import declared_version, snake
from pipelines.ingest.billing.delivery import Map
from pipelines.ingest.billing.manifest import Manifest, ManifestPath, exports_in, in_threads, read_cached
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
# The other data sets of FOCUS, by a column that only they have (facts standards-2026 1.1).
_DATA_SETS = {
    "invoice_issue_status": "InvoiceDetail",
    "contract_commitment_id": "ContractCommitment",
    "billing_period_status": "BillingPeriod",
}

# Metadata of a data set list its columns.
_METADATA_BYTES = 1 << 20
READERS = {"InvoiceDetail": "invoices", "BillingPeriod": "invoices", "ContractCommitment": "commitments"}


@dataclass(frozen=True)
class BareFile:
    """What a file is by its content: its billing month and columns, or why it is no bill.

    `data_set` is that of FOCUS where it is one other than its costs.
    """

    columns: list[str]
    month: str = ""
    fault: str = ""
    data_set: str = ""


def read_bare(
    source: BillingSource, listing: Sequence[Object], store: Store, cache: Path, run: Map = in_threads
) -> list[Manifest]:
    """The files that match `source.files`, as if each billing month had a manifest of them.

    A file belongs to the month its folder names, else to the first billing month of its lines; each new file is read
    once for that. Raises SourceError where none matches, where one is no bill, or where manifests name which of them
    are current.
    """
    items = [item for item in listing if any(fnmatchcase(item.key, pattern) for pattern in source.files)]
    for export in exports_in(listing):
        if any(item.key.startswith(f"{export.root}/".lstrip("/")) for item in items):
            raise SourceError(
                f"{store.location} holds the manifests of {export.export}, which name its current files; remove "
                f"`files` from the [[billing]] entry and point location at {store.uri(export.root).rstrip('/')}."
            )
    if not items:
        ends = Counter(end for item in listing if (end := suffix_of(item.key)))
        fix = f'write "*{ends.most_common(1)[0][0]}"' if ends else f"check `location` of [[billing]] {source.name}"
        holds = ", ".join(counted(count, f"{end} file") for end, count in ends.most_common()) or "no bill file"
        raise SourceError(
            f"{store.location} holds {holds} and none that matches files = {', '.join(map(repr, source.files))} "
            f"({counted(len(listing), 'file')} listed); {fix}."
        )
    found = bare_files(items, store, cache, run)
    if fault := next((file.fault for file in found.values() if file.fault), None):
        raise SourceError(f"{fault} Leave it out of `files`, or move it out of the bill's folder.")
    months = grouped(items, lambda item: found[item.key].month)
    version = _declared(listing, store, cache / "metadata")
    return [_delivered(source, month, its, found[its[0].key].columns, version) for month, its in sorted(months.items())]


def suffix_of(key: str) -> str | None:
    """The end of a key that shows a bill's form, as it is written; None of another file."""
    return next((key[-len(end) :] for end in SUFFIXES if key.lower().endswith(end)), None)


def _declared(listing: Sequence[Object], store: Store, cache: Path) -> str:
    """The version of FOCUS that the metadata files next to the bill declare; empty where they name none or several."""
    items = [item for item in listing if item.key.endswith(".json") and item.size <= _METADATA_BYTES]
    texts = read_cached(items, lambda item: store.read(item.key).decode("utf-8-sig", "replace"), cache) if items else {}
    versions: set[str] = set()
    for text in texts.values():
        with suppress(ParseError):
            versions.add(declared_version(parse_json(text)))
    versions.discard("")
    return versions.pop() if len(versions) == 1 else ""


def bare_files(items: Sequence[Object], store: Store, cache: Path, run: Map = in_threads) -> dict[str, BareFile]:
    """What each file is, by key; read, by `run`, where it changed since the folder `cache` was written."""
    looks = read_cached(items, lambda item: json.dumps(asdict(_look(item, store))), cache, run)
    return {key: BareFile(**parse_json(text)) for key, text in looks.items()}


def _delivered(
    source: BillingSource, month: str, items: Sequence[Object], columns: Sequence[str], version: str
) -> Manifest:
    text = json.dumps([[item.key, item.size] for item in items])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = ManifestPath(items[0], "", source.name, month)
    return Manifest(path, text, "cur2", f"files-{digest}", tuple(item.key for item in items), tuple(columns), version)


def _look(item: Object, store: Store) -> BareFile:
    where = store.uri(item.key)
    with TemporaryDirectory(prefix="trainledger-") as scratch:
        path = Path(scratch) / "file"
        store.download(item.key, path)
        try:
            columns, starts = _columns_and_starts(path, where, item.size)
        except SourceError as error:
            return BareFile([], fault=str(error))
    names = {snake(column) for column in columns}
    if data_set := next((_DATA_SETS[name] for name in names & _DATA_SETS.keys()), None):
        fault = f"{where} is FOCUS {data_set}, not its costs; an entry [[{READERS[data_set]}]] reads it."
        return BareFile(columns, fault=fault, data_set=data_set)
    if named := _MONTH.search(item.key):
        month = "-".join(part.zfill(2) for part in named.groups() if part)
    elif _dated(columns):
        month = min((start[:7] for start in starts if start), default="")
    else:
        fix = "give the files that AWS delivered, of a Cost and Usage Report or a FOCUS export"
        fault = f"{where} is no bill: it has no column of a billing period or of when use started; {fix}."
        return BareFile(columns, fault=fault)
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        fix = "put it into a folder such as BILLING_PERIOD=2026-07"
        fault = f"{where}: its billing month is unknown, for no line of it has a start date; {fix}."
        return BareFile(columns, fault=fault)
    return BareFile(columns, month)


def _columns_and_starts(path: Path, where: str, size: int) -> tuple[list[str], list[str | None]]:
    """The columns of a delivered file, and the distinct days its lines are billed for."""
    # Read where a file is new only.
    import pyarrow as pa
    from pyarrow import compute, csv, parquet

    from pipelines.base.limits import UNPACK_RATIO
    from pipelines.ingest.billing.unpack import PARQUET, Allowance, magic, read_header, unpacked

    widths: set[tuple[int, int]] = set()

    def skip(row: csv.InvalidRow) -> str:
        widths.add((row.actual_columns, row.expected_columns))
        return "skip"

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
                lines = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip)
                with unpacked(path, allowed) as stream:
                    found = csv.read_csv(stream, parse_options=lines, convert_options=options).column(0)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{where} is not a bill's csv or Parquet file ({reason}); have it delivered again.") from None
    days = compute.unique(found.cast(pa.string())).to_pylist() if found is not None else []  # pyright: ignore
    if widths and not any(days):
        width, heads = min(widths)
        raise SourceError(f"{where}: its header has {heads} columns, its lines have {width}; have it delivered again.")
    return columns, days


def _dated(columns: Sequence[str]) -> str | None:
    names = {snake(column): column for column in reversed(columns)}
    return next((names[name] for name in (*_PERIODS, *_USES) if name in names), None)
