"""Billing exports in both AWS layouts, written file by file, so that a test can spoil any of it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.config.settings import STANDARD_TAGS
from pipelines.config.sources import BillingSource
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.billing import exports
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.select import raw_select

# A legacy line: what a bill must have, under its csv headers.
LEGACY_LINE = {
    "bill/PayerAccountId": "000011112222",
    "bill/BillingPeriodStartDate": "2026-07-01T00:00:00Z",
    "lineItem/UsageAccountId": "000033334444",
    "lineItem/LineItemType": "Usage",
    "lineItem/UsageStartDate": "2026-07-01T00:00:00Z",
    "lineItem/UsageEndDate": "2026-07-01T01:00:00Z",
    "lineItem/ProductCode": "AmazonEC2",
    "lineItem/UsageType": "BoxUsage:p5.48xlarge",
    "lineItem/UsageAmount": "1",
    "lineItem/CurrencyCode": "USD",
    "lineItem/UnblendedCost": "55.04",
}
CUR2_LINE = {
    "bill_payer_account_id": "000011112222",
    "bill_payer_account_name": "payer",
    "bill_billing_period_start_date": "2026-07-01T00:00:00.000Z",
    "line_item_usage_account_id": "000033334444",
    "line_item_line_item_type": "Usage",
    "line_item_usage_start_date": "2026-07-01T00:00:00.000Z",
    "line_item_usage_end_date": "2026-07-01T01:00:00.000Z",
    "line_item_product_code": "AmazonEC2",
    "line_item_usage_type": "BoxUsage:p5.48xlarge",
    "line_item_usage_amount": "1",
    "line_item_currency_code": "USD",
    "line_item_unblended_cost": "55.04",
}
MAP = pa.map_(pa.string(), pa.string())


def csv_text(lines: Sequence[Mapping[str, str]]) -> bytes:
    """The lines as a csv under the columns of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A ZIP of these members."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def parquet(
    lines: Sequence[Mapping[str, object]],
    types: Mapping[str, pa.DataType] | None = None,
    rows_per_group: int | None = None,
) -> bytes:
    """The lines as CUR 2.0 Parquet: costs double, dates timestamps, maps, else text; `types` overrides."""
    columns = {}
    for name in lines[0]:
        values = [line.get(name) for line in lines]
        kind = (types or {}).get(name) or _type(name)
        if kind == MAP:
            values = [list(value.items()) if isinstance(value, Mapping) else value for value in values]
        if pa.types.is_timestamp(kind):
            columns[name] = pa.array([str(v)[:19].replace(" ", "T") for v in values]).cast(pa.timestamp("s")).cast(kind)
        elif kind == pa.float64():
            columns[name] = pa.array([None if v is None else float(str(v)) for v in values], kind)
        else:
            columns[name] = pa.array(values, kind)
    target = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), target, compression="snappy", row_group_size=rows_per_group)
    return target.getvalue().to_pybytes()


def _type(name: str) -> pa.DataType:
    if name in ("resource_tags", "tags", "product", "cost_category"):
        return MAP
    if name.endswith("_date"):
        return pa.timestamp("ms", "UTC")
    return pa.float64() if "cost" in name or "amount" in name else pa.string()


def write(root: Path, files: Mapping[str, bytes | str]) -> None:
    """Write files below `root`."""
    for key, content in files.items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def legacy_export(
    root: Path,
    files: Mapping[str, bytes],
    *,
    name: str = "ml-cur",
    month: str = "20260701-20260801",
    assembly: str = "asm-1",
    folder: str | None = None,
    bucket: str = "example-billing",
    prefix: str = "cur",
) -> Path:
    """A legacy export below `root`/`name`, its files under `folder` (create-new layout unless given)."""
    folder = f"{month}/{assembly}" if folder is None else folder
    keys = [f"{prefix}/{name}/{folder}/{file}" for file in files]
    manifest = {
        "assemblyId": assembly,
        "account": "000011112222",
        "columns": [{"category": "lineItem", "name": "UnblendedCost"}],
        "reportName": name,
        "billingPeriod": {"start": f"{month[:8]}T000000.000Z", "end": f"{month[9:]}T000000.000Z"},
        "bucket": bucket,
        "reportKeys": keys,
    }
    text = json.dumps(manifest)
    write(root / name, {f"{folder}/{file}": content for file, content in files.items()})
    write(root / name, {f"{month}/{name}-Manifest.json": text})
    if assembly in folder:
        write(root / name, {f"{folder}/{name}-Manifest.json": text})
    return root / name


def cur2_export(
    root: Path,
    files: Mapping[str, bytes],
    *,
    name: str = "ml-cur2",
    month: str = "2026-07",
    execution: str = "20260801T000000Z-exec-1",
    overwrite: bool = False,
    bucket: str = "example-billing",
    prefix: str = "cur2",
) -> Path:
    """A Data Export below `root`/`name`, in the create-new layout unless `overwrite`."""
    folder = f"data/BILLING_PERIOD={month}" + ("" if overwrite else f"/{execution}")
    manifest = {
        "executionId": execution,
        "columns": [{"name": "bill_payer_account_name", "type": "string"}],
        "dataFiles": [f"s3://{bucket}/{prefix}/{name}/{folder}/{file}" for file in files],
    }
    write(root / name, {f"{folder}/{file}": content for file, content in files.items()})
    write(root / name, {f"metadata/BILLING_PERIOD={month}/{name}-Manifest.json": json.dumps(manifest)})
    return root / name


def source(location: Path | str, **more: str) -> BillingSource:
    return BillingSource(name="payer", location=str(location), **more)


def stored(location: Path | str, raw_root: Path, **more: str) -> list[RawDelivery]:
    """Every current delivery of an export, ingested."""
    given = source(location, **more)
    return [exports.ingest(found, given, raw_root) for found in exports.list_deliveries(given, raw_root)]


def bill(raws: Sequence[RawDelivery], sql: str, tags: Mapping[str, Sequence[str]] = STANDARD_TAGS) -> list:
    """A SELECT's rows as tuples over the raw table the deliveries make."""
    listed = raws[0].delivery.listed
    shown = raw_select(raws, tags, listed)
    with DuckDBEngine() as engine:
        for name, files in shown.views.items():
            engine.scan_files(name, files)
        engine.view_sql(listed.table, shown.sql)
        return engine.query(sql).rows()
