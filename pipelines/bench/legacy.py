"""The generated large bill as AWS's legacy report delivers it: the same lines as gzipped csv."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipelines.demo.columns import MAP
from pipelines.demo.lines import month_end, month_start

# Its functions are made when it is imported, so a type checker does not know them.
pc: Any = pyarrow.compute

_CATEGORIES = ("bill", "capacity_reservation", "identity", "line_item", "pricing", "product", "reservation")
_CATEGORIES += ("savings_plan", "split_line_item")
_TAGS = ("run_id", "team", "owner", "environment", "cost_center", "service", "managed_by")
_BATCH_ROWS = 1 << 16


def write_legacy_bill(files: list[Path], out: Path, month: str) -> None:
    """Write the Parquet files of a bench bill as csv.gz, one for one, and the manifest that names them."""
    days = f"{month_start(month):%Y%m%d}-{month_end(month):%Y%m%d}"
    (out / days / "asm-1").mkdir(parents=True)
    names = [f"{days}/asm-1/{out.name}-{number}.csv.gz" for number in range(1, len(files) + 1)]
    for file, name in zip(files, names, strict=True):
        _write_csv(pq.ParquetFile(file), out / name)
    manifest = {
        "assemblyId": "asm-1",
        "columns": [{"category": "lineItem", "name": "UnblendedCost"}],
        "reportName": out.name,
        "billingPeriod": {"start": f"{days[:8]}T000000.000Z", "end": f"{days[9:]}T000000.000Z"},
        "bucket": "bench-billing",
        "reportKeys": [f"cur/{out.name}/{name}" for name in names],
    }
    (out / days / f"{out.name}-Manifest.json").write_text(json.dumps(manifest))


def _write_csv(content: pq.ParquetFile, path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=6) as packed:
        for number, batch in enumerate(content.iter_batches(batch_size=_BATCH_ROWS)):
            text = _as_legacy(batch).write_csv(include_header=number == 0, datetime_format="%Y-%m-%dT%H:%M:%SZ")
            packed.write(text.encode())


def _as_legacy(batch: pa.RecordBatch) -> pl.DataFrame:
    """The columns of a legacy report: numbers with ten places, a column a tag."""
    columns = {_header(f.name): _plain(batch[f.name]) for f in batch.schema if f.type != MAP}
    for tag in _TAGS:
        columns[f"resourceTags/user:{tag}"] = pc.map_lookup(batch["resource_tags"], f"user_{tag}", "first")
    return pl.DataFrame(columns)


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(pa.decimal128(20, 10)) if pa.types.is_floating(values.type) else values


def _header(name: str) -> str:
    """`line_item_unblended_cost` -> `lineItem/UnblendedCost`; product attributes begin with a small letter."""
    category = next(found for found in _CATEGORIES if name.startswith(f"{found}_"))
    word = _camel(name.removeprefix(f"{category}_"))
    return f"{_small(_camel(category))}/{_small(word) if category == 'product' else word}"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _small(word: str) -> str:
    return word[:1].lower() + word[1:]
