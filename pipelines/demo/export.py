"""A Data Exports bucket: Parquet files of CUR 2.0 columns and the manifest that names the current ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.demo.columns import BLANK_AS_EMPTY, EXPORT_TYPES, MAP, SCHEMA
from pipelines.demo.lines import Line, month_end, month_start
from pipelines.demo.scenario import Account


@dataclass(frozen=True)
class Delivery:
    """One execution of the export for a billing month ('YYYY-MM')."""

    bucket: str
    prefix: str
    name: str
    account_id: str
    month: str
    delivered_at: datetime

    @cached_property
    def execution_id(self) -> str:
        digest = hashlib.blake2b(f"{self.name}{self.month}{self.delivered_at}".encode()).hexdigest()
        return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))

    @property
    def folder(self) -> str:
        """Where its data files lie, relative to the export's root."""
        return f"data/BILLING_PERIOD={self.month}/{self.delivered_at:%Y%m%dT%H%M%SZ}-{self.execution_id}"

    @property
    def manifest(self) -> str:
        """Where the month's current manifest lies, relative to the export's root."""
        return f"metadata/BILLING_PERIOD={self.month}/{self.name}-Manifest.json"

    def file(self, number: int) -> str:
        """The number-th data file, from 1, relative to the export's root."""
        return f"{self.folder}/{self.name}-{number:05d}.snappy.parquet"

    def manifest_text(self, files: Sequence[str]) -> str:
        """The manifest as AWS writes it once every data file has landed."""
        arn = f"arn:aws:bcm-data-exports:us-east-1:{self.account_id}:export/{self.name}-1f2e3d4c"
        columns = [{"name": field.name, "type": EXPORT_TYPES[field.type]} for field in SCHEMA]
        manifest = {
            "executionId": self.execution_id,
            "exportArn": arn,
            "columns": columns,
            "dataFiles": [f"s3://{self.bucket}/{self.prefix}/{self.name}/{file}" for file in files],
            "additionalOutputFiles": [],
        }
        return json.dumps(manifest, indent=1) + "\n"


def bill_constants(payer: Account, month: str) -> dict[str, Any]:
    """What every ordinary line of a payer's month has."""
    return {
        "bill_bill_type": "Anniversary",
        "bill_billing_entity": "AWS",
        "bill_billing_period_start_date": month_start(month),
        "bill_billing_period_end_date": month_end(month),
        "bill_invoicing_entity": "Amazon Web Services, Inc.",
        "bill_payer_account_id": payer.id,
        "bill_payer_account_name": payer.name,
        "line_item_currency_code": "USD",
        "line_item_legal_entity": "Amazon Web Services, Inc.",
        "pricing_currency": "USD",
    }


def table(lines: Sequence[Line], constants: dict[str, Any]) -> pa.Table:
    """The lines as one table of `SCHEMA`; `constants` fill columns a line leaves out."""
    known = set().union(*lines)
    columns = []
    for column in SCHEMA:
        name = column.name
        blank = constants.get(name, "" if name in BLANK_AS_EMPTY else None)
        if name not in known:
            columns.append(pa.repeat(pa.scalar(blank, column.type), len(lines)))
            continue
        values = [line.get(name, blank) for line in lines]
        if column.type == MAP:
            values = [None if value is None else list(value.items()) for value in values]
        columns.append(pa.array(values, column.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def parquet_bytes(content: pa.Table) -> bytes:
    """The table as a snappy Parquet file; the same table gives the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink, compression="snappy", store_schema=False)
    return sink.getvalue().to_pybytes()


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write the file unless it already holds exactly this; True when written. Atomic."""
    if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
    return True
