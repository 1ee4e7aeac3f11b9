"""A month of any number of bill lines with matching run events, for `make bench`: written file by file."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.errors import UsageError
from pipelines.bench.file import bench_file
from pipelines.bench.runs import COMPANY, Shape
from pipelines.demo.events import event_files
from pipelines.demo.export import Delivery
from pipelines.demo.lines import month_end
from pipelines.demo.scenario import Account

LINES_PER_FILE, ROW_GROUP = 1_000_000, 131_072
FEWEST_LINES = 10_000
PAYER = Account("100000000000", "bench-payer")
ACCOUNTS = 300
# A restatement corrects the price of every so-many-th line of ordinary usage in the first file.
CORRECTED_EVERY, CORRECTION = 97, 1.03

_CONFIG = """\
[warehouse]
location = "warehouse"

[[billing]]
name = "bench"
location = "bucket/cur2/bench"

[[runs]]
name = "jobs"
kind = "events"
location = "events"
"""


@dataclass(frozen=True)
class BenchData:
    """Where a generated bill lies, and what it holds."""

    config: Path
    export: Path
    events: Path
    month: str
    line_count: int
    run_count: int


def write_bench_bill(
    out: Path, lines: int, month: str = "2026-07", seed: int = 1, shape: Shape = COMPANY, accounts: int = ACCOUNTS
) -> BenchData:
    """Write exactly `lines` bill lines of `month` with the runs of its shape and a configuration, below `out`.

    The same arguments give the same bytes. Memory stays that of one file of a million lines.
    """
    if lines < FEWEST_LINES:
        raise UsageError(f"A bench bill has at least {FEWEST_LINES} lines, not {lines}; ask for more.")
    export, events = out / "bucket/cur2/bench", out / "events"
    delivery = _delivery(month, month_end(month) + timedelta(days=5, hours=3))
    count = -(-lines // LINES_PER_FILE)
    run_count, used_by = 0, _used_by(accounts)
    for number in range(count):
        share = lines // count + (number < lines % count)
        content, timelines = bench_file(used_by, number, count, share, month, seed, shape)
        _write_parquet(content, export / delivery.file(number + 1))
        for path, data in event_files(timelines).items():
            _write(events / path, data)
        run_count += len(timelines)
    _write_manifest(export, delivery, count)
    _write(out / "trainledger.toml", _CONFIG.encode())
    return BenchData(out / "trainledger.toml", export, events, month, lines, run_count)


def _used_by(accounts: int) -> list[Account]:
    return [PAYER, *(_account(number) for number in range(1, accounts + 1))]


def _account(number: int) -> Account:
    return Account(f"{100000000000 + number * 7919:012d}", f"bench-{number:03d}")


def restate(out: Path) -> int:
    """Deliver a month of the bill below `out` once more, as AWS does: all files in a new folder, then the manifest.

    Of several months the middle one. Some lines of the first file cost 3 % more; returns how many.
    """
    export = out / "bucket/cur2/bench"
    manifests = sorted(export.glob("metadata/*/*-Manifest.json"))
    files, delivery = _next_delivery(export, manifests[len(manifests) // 2])
    changed, corrected = _corrected(pq.ParquetFile(files[0]).read())
    _write_parquet(changed, export / delivery.file(1))
    for number, file in enumerate(files[1:], start=2):
        shutil.copyfile(file, export / delivery.file(number))
    _write_manifest(export, delivery, len(files))
    return corrected


def add_day(out: Path, lines: int) -> None:
    """Deliver the newest month of the bill below `out` once more, with this many further lines and their runs."""
    export = out / "bucket/cur2/bench"
    files, delivery = _next_delivery(export, max(export.glob("metadata/*/*-Manifest.json")))
    count = len(files) + 1
    content, timelines = bench_file(_used_by(ACCOUNTS), count - 1, count, lines, delivery.month, seed=1, shape=COMPANY)
    _write_parquet(content, export / delivery.file(count))
    for number, file in enumerate(files, start=1):
        shutil.copyfile(file, export / delivery.file(number))
    for path, data in event_files(timelines).items():
        _write(out / "events" / path, data)
    _write_manifest(export, delivery, count)


def _next_delivery(export: Path, manifest: Path) -> tuple[list[Path], Delivery]:
    """The files of a delivery, and the delivery of its month a day later."""
    month = manifest.parent.name.removeprefix("BILLING_PERIOD=")
    files = [export / uri.split("/bench/", 1)[1] for uri in json.loads(manifest.read_text())["dataFiles"]]
    delivered_at = datetime.strptime(files[0].parent.name.split("-")[0], "%Y%m%dT%H%M%SZ")
    return files, _delivery(month, delivered_at + timedelta(days=1))


def _corrected(content: pa.Table) -> tuple[pa.Table, int]:
    kind, operation = (content[f"line_item_{name}"].to_numpy() for name in ("line_item_type", "operation"))
    is_nth = np.arange(len(content)) % CORRECTED_EVERY == 0
    chosen = is_nth & (kind == "Usage") & (operation != "RunInstances")
    for name in ("line_item_unblended_cost", "pricing_public_on_demand_cost"):
        cost = content[name].to_numpy()
        raised = pa.array(np.where(chosen, np.round(cost * CORRECTION, 10), cost), from_pandas=True)
        content = content.set_column(content.schema.get_field_index(name), name, raised)
    return content, int(chosen.sum())


def _delivery(month: str, delivered_at: datetime) -> Delivery:
    return Delivery("bench-billing", "cur2", "bench", PAYER.id, month, delivered_at)


def _write_parquet(content: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path, compression="snappy", store_schema=False, row_group_size=ROW_GROUP)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _write_manifest(export: Path, delivery: Delivery, count: int) -> None:
    """Written last: only then is the delivery complete."""
    files = [delivery.file(number + 1) for number in range(count)]
    _write(export / delivery.manifest, delivery.manifest_text(files).encode())
