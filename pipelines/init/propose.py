"""What a first trainledger.toml has: the entries of bills and invoices, and tag keys of the newest month."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from pipelines.base.address import is_s3
from pipelines.config.settings import STANDARD_TAGS
from pipelines.config.sources import AnswerSource, BillingSource
from pipelines.ingest.billing.options import TagKeyCost
from pipelines.ingest.billing.tags import bare
from pipelines.init.find import Candidate, DataSet

# Keys that companies use for each of our tags, without case and separators, the most specific first.
_LIKELY = {
    "run_id": (
        *("trainingrun", "trainingrunid", "mlflowrunid", "wandbrunid", "experimentid", "experiment"),
        *("trainingjob", "trainingjobname", "jobid", "jobname", "slurmjobid", "job", "run", "workflow"),
    ),
    "owner": ("ownedby", "user", "username", "createdby", "creator", "contact", "email", "requester"),
    "team": ("squad", "department", "dept", "group", "costcenter", "costcentre", "businessunit", "project"),
}


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


def configuration(
    candidates: Sequence[Candidate], data_sets: Sequence[DataSet], folder: Path, tags: Mapping[str, Sequence[str]]
) -> str:
    """The text of a trainledger.toml in `folder` that reads the chosen bills and the other data sets."""
    entries = [_entry("billing", one.bill.source, folder) for one in candidates if not one.rival]
    entries += [_entry(section, source, folder) for _, section, source in data_sets]
    others = "\n".join(_entry("billing", _before(one), folder) for one in candidates if one.rival)
    lines = [f"{name.ljust(6)} = {_quoted(keys)}" for name, keys in tags.items()]
    lines += [f'# {name.ljust(6)} = ["…"]' for name in STANDARD_TAGS if name not in tags]
    parts = [
        '[warehouse]\nlocation = "warehouse"          # a folder or s3:// prefix; everything we write is below it',
        *entries,
        "# Also found. For the same months it would count the payer's dollars twice:\n"
        + "\n".join(f"# {line}".rstrip() for line in others.splitlines())
        if others
        else "",
        "[tags]                          # tag keys of the bill that name a run, its owner and its team\n"
        + "\n".join(lines),
        "# Run events add cost per epoch and per checkpoint (docs/run-events.md):\n"
        '# [[runs]]\n# name     = "jobs"\n# kind     = "events"\n# location = "s3://YOUR-BUCKET/trainledger/"',
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _before(candidate: Candidate) -> BillingSource:
    """A bill that is not chosen, for the months before those of the one that is."""
    assert candidate.rival
    first = candidate.rival.bill.deliveries[0].billing_period
    if candidate.bill.deliveries[0].billing_period >= first:
        return candidate.bill.source
    before = date.fromisoformat(f"{first}-01") - timedelta(days=1)
    return candidate.bill.source.model_copy(update={"last_month": f"{before:%Y-%m}"})


def _entry(section: str, source: BillingSource | AnswerSource, folder: Path) -> str:
    values = source.model_dump(exclude_defaults=True)
    location = str(source.location)
    if not is_s3(location) and Path(location).is_relative_to(folder):
        values["location"] = str(Path(location).relative_to(folder))
    width = max(map(len, values))
    return "\n".join([f"[[{section}]]", *(f"{key.ljust(width)} = {_quoted(value)}" for key, value in values.items())])


def _quoted(value: str | Sequence[str]) -> str:
    """A string of TOML, whose escapes are those of JSON, or a list of strings; one alone stands for its list."""
    return json.dumps(value, ensure_ascii=False)
