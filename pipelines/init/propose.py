"""What a first trainledger.toml has: tag keys of the newest month by their dollars, and the bill's entries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from pipelines.base.console import Console
from pipelines.config.settings import STANDARD_TAGS
from pipelines.config.sources import BillingSource
from pipelines.doctor.billing import sample
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.exports import ingest
from pipelines.ingest.billing.options import TagKeyCost, tag_costs
from pipelines.ingest.billing.tags import bare
from pipelines.init.find import Bill

# A month of more bytes is judged by one of its files.
_MOST_BYTES = 512 << 20
# Keys that companies use for each of our tags, without case and separators, the most telling first.
_LIKELY = {
    "run_id": (
        *("trainingrun", "trainingrunid", "mlflowrunid", "wandbrunid", "experimentid", "experiment"),
        *("trainingjob", "trainingjobname", "jobid", "jobname", "slurmjobid", "job", "run", "workflow"),
    ),
    "owner": ("ownedby", "user", "username", "createdby", "creator", "contact", "email", "requester"),
    "team": ("squad", "department", "dept", "group", "costcenter", "costcentre", "businessunit", "project"),
}


def tag_keys(bill: Bill, raw_root: Path, now: datetime, console: Console) -> tuple[str, list[TagKeyCost]]:
    """The newest month of a bill, and its tag keys, the most dollars first.

    The month is read into the raw store, where the first build finds it.
    """
    newest = bill.deliveries[-1]
    console.note(f"Reading {newest.billing_period} …")
    if newest.missing or sum(item.size for item in newest.objects) > _MOST_BYTES:
        with TemporaryDirectory(prefix="trainledger-") as scratch:
            raw = sample(newest, bill.source, Path(scratch))
            return newest.billing_period, tag_costs(raw) if raw else []
    raw: RawDelivery | None = ingest(newest, bill.source, raw_root)
    return newest.billing_period, tag_costs(raw)


def proposed_tags(keys: Sequence[TagKeyCost]) -> dict[str, str]:
    """The key that stands for each of run_id, owner and team where the bill has one, else nothing."""
    by_name: dict[str, str] = {}
    for key in keys:
        by_name.setdefault(bare(key.key), key.key)
    proposed = {}
    for name, standard in STANDARD_TAGS.items():
        wanted = (*map(bare, standard), *_LIKELY[name])
        if found := next((by_name[one] for one in wanted if one in by_name), None):
            proposed[name] = found
    return proposed


def shown(keys: Sequence[TagKeyCost], tags: Mapping[str, str]) -> pl.DataFrame:
    """The tag keys as a table for the terminal."""
    used = {bare(key): name for name, key in tags.items()}
    rows = [
        (
            key.key,
            ", ".join(f"{amount:,.2f} {currency}" for currency, amount in key.cost.items()),
            key.value_count,
            used.get(bare(key.key), ""),
        )
        for key in keys[:20]
    ]
    return pl.DataFrame(rows, schema=["tag key", "billed", "values", "read as"], orient="row")


def configuration(bills: Sequence[Bill], folder: Path, tags: Mapping[str, str]) -> str:
    """The text of a trainledger.toml in `folder` that reads the first of the bills."""
    entries = [_entry(bill.source, folder) for bill in bills]
    others = "\n".join(f"# {line}".rstrip() for entry in entries[1:] for line in entry.splitlines())
    lines = [f"{name.ljust(6)} = [{_quoted(key)}]" for name, key in tags.items()]
    lines += [f'# {name.ljust(6)} = ["…"]' for name in STANDARD_TAGS if name not in tags]
    parts = [
        '[warehouse]\nlocation = "warehouse"          # a folder or s3:// prefix; everything we write is below it',
        entries[0],
        f"# Also found; an entry of the same payer would count its dollars twice:\n{others}" if others else "",
        "[tags]                          # tag keys of the bill that name a run, its owner and its team\n"
        + "\n".join(lines),
        "# Run events add cost per epoch and per checkpoint (docs/run-events.md):\n"
        '# [[runs]]\n# name     = "jobs"\n# kind     = "events"\n# location = "s3://YOUR-BUCKET/trainledger/"',
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _entry(source: BillingSource, folder: Path) -> str:
    values = source.model_dump(exclude_defaults=True)
    if not source.location.startswith("s3://") and Path(source.location).is_relative_to(folder):
        values["location"] = str(Path(source.location).relative_to(folder))
    width = max(map(len, values))
    return "\n".join(["[[billing]]", *(f"{key.ljust(width)} = {_quoted(value)}" for key, value in values.items())])


def _quoted(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
