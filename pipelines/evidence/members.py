"""The members that a pack may hold: those its own records name. `verify` refuses every other one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.base.resources import known_reports
from pipelines.evidence.archive import Pack
from pipelines.evidence.inputs import INPUTS, bill_folder
from pipelines.evidence.model_files import LOCK, model_members
from pipelines.evidence.pack import BEFORE, CHECKS, PUBLICATION, README, record_member
from pipelines.evidence.reports import REPORTS
from pipelines.evidence.run_logs import log_member
from pipelines.ingest.billing.delivery import RECORD
from pipelines.models.catalog import PUBLISHED, load_catalog
from pipelines.warehouse.publication import Publication

# A pack holds files of the publication before and no record of it; data files are named by digests.
_BEFORE = re.compile(rf"{BEFORE}/({'|'.join(PUBLISHED.values())})/[0-9a-f]{{16}}-[0-9a-f]{{16}}\.parquet")


def unnamed(pack: Pack, published: Publication) -> list[str]:
    """The members that no record of the pack names. CheckError for records of another form."""
    try:
        named = {*_always(published), *_records(pack, published), *_delivered(pack, published)}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise pack.malformed(f"{INPUTS} or {PUBLICATION}") from None
    has_before = published.number != 1 and not pack.about.get("has_pseudonyms")
    before = {name for name in pack.below(BEFORE) if has_before and _BEFORE.fullmatch(name)}
    return sorted({*pack.members} - named - before)


def _always(published: Publication) -> Iterator[str]:
    yield from (README, PUBLICATION, INPUTS, CHECKS, LOCK, *model_members())
    for kind in known_reports():
        yield from (f"{REPORTS}/{kind}.html", f"{REPORTS}/{kind}.pdf")
    for model in load_catalog().public:
        if model.key in published.tables:
            yield from (f"{model.key}.parquet", f"{model.key}.csv")


def _records(pack: Pack, published: Publication) -> Iterator[str]:
    if not pack.about.get("has_pseudonyms"):
        for key, named in published.raw.items():
            yield from (record_member(key, file) for file in named["files"])


def _delivered(pack: Pack, published: Publication) -> Iterator[str]:
    if not pack.about["has_bills"]:
        return
    inputs = pack.json(INPUTS)
    folders = {bill_folder(delivery) for delivery in published.inputs["deliveries"]}
    for delivery in inputs["deliveries"]:
        if (folder := bill_folder(delivery)) in folders:
            yield from (f"{folder}/{name}" for name in (RECORD, *(file["kept_as"] for file in delivery["files"])))
    for source in inputs["runs"]:
        yield from (log_member(source["name"], file["key"]) for file in source["files"] or ())
