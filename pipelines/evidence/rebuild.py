"""Builds every table again from what a pack records, in a clean place, as the build that published them did."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.console import Console
from pipelines.errors import CheckError, SourceError
from pipelines.evidence.archive import Pack
from pipelines.evidence.inputs import BILLS, recorded_sources, refuse_changed
from pipelines.evidence.pack import BEFORE, INPUTS, PUBLICATION, RECORDS
from pipelines.lake import Publication
from pipelines.models.build import Builder, Built
from pipelines.models.catalog import PUBLISHED, WRITTEN_RAW
from pipelines.policy import Policy
from pipelines.settings import Settings
from pipelines.settings import Warehouse as Place
from pipelines.sources.published_bill import PublishedBill
from pipelines.stated.decisions import Decisions
from pipelines.stated.terms import Terms
from pipelines.warehouse import Warehouse

_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/\d{4}-\d{2}/[0-9a-f]{64}")


def published_in(pack: Pack) -> Publication:
    """The publication a pack is of."""
    try:
        record = pack.json(PUBLICATION)
        published = Publication(**{**record, "published_at": datetime.fromisoformat(record["published_at"])})
        # What becomes part of a path here must be what we would have written.
        parts = [(d["source"], d["billing_period"], d["fingerprint"]) for d in published.inputs["deliveries"]]
        is_ours = all(_PLACE.fullmatch("/".join(words)) for words in parts) and {*published.raw} <= {*WRITTEN_RAW}
    except (KeyError, TypeError, ValueError, AttributeError):
        is_ours = False
    if not is_ours:
        raise CheckError(f"{pack.path}: {PUBLICATION} is not the record of a publication; have the pack sent again.")
    return published


def rebuild(pack: Pack, place: Path, settings: Settings | None, console: Console) -> tuple[Builder, list[Built]]:
    """Every table, made in `place` from the recorded deliveries alone; `settings` says where they lie now.

    SourceError where a recorded file is gone or changed, CheckError where a table fails a check.
    """
    published, told = published_in(pack), pack.json(INPUTS)
    deliveries = published.inputs["deliveries"]
    sources = recorded_sources(told, settings)
    if pack.about["has_bills"]:
        for name in pack.below(BILLS):
            pack.extract(name, place / "raw" / name.removeprefix(f"{BILLS}/"))
    else:
        refuse_changed(told["deliveries"], sources)
    warehouse = _warehouse(published, place, () if pack.about["has_bills"] else sources, settings)
    _ingest(warehouse, deliveries)
    _plant(pack, warehouse, published)
    return _build(Builder(warehouse), sorted({str(delivery["billing_period"]) for delivery in deliveries}), console)


def _warehouse(published: Publication, place: Path, sources: Sequence, settings: Settings | None) -> Warehouse:
    like = settings.warehouse if settings else Place()
    # What the pack records as validated by Great Expectations is validated again.
    is_validated = any(check.get("expectation") for check in published.checks)
    # Constructed, for the environment must not have a say in what was recorded.
    clean = Settings.model_construct(
        warehouse=Place(
            location=str(place),
            memory_limit=like.memory_limit,
            threads=like.threads,
            gate="great_expectations" if is_validated else like.gate,
        ),
        billing=tuple(sources),
        tags={name: tuple(keys) for name, keys in published.inputs["tags"].items()},
        policy=Policy(**published.inputs["policy"]),
        decisions=Decisions.recorded(published.inputs.get("decisions", {})),
        terms=Terms(**published.inputs.get("terms", {})),
    )
    warehouse = Warehouse(clean)
    warehouse.bill = PublishedBill(place / "raw", clean, published.inputs["deliveries"])
    return warehouse


def _ingest(warehouse: Warehouse, deliveries: Sequence[Mapping[str, Any]]) -> None:
    for delivery in deliveries:
        for raw in warehouse.bill.ingest(delivery["billing_period"]):
            if raw.delivery.missing:
                raise SourceError(f"{raw.delivery.missing[0]} is gone, which the publication was made from.")


def _plant(pack: Pack, warehouse: Warehouse, published: Publication) -> None:
    """What the build found in its warehouse: the records of the sources, and the publication before."""
    for key in published.raw:
        names = pack.below(f"{RECORDS}/{key.removeprefix('raw/')}")
        staged = [pack.extract(name, warehouse.staged(f"{key}-{place}", None)) for place, name in enumerate(names)]
        warehouse.lake.commit(key, staged, "0" * 16, None)
    tables: dict[str, dict[str, Any]] = {}
    for name in pack.below(BEFORE):
        key, _, file = name.removeprefix(f"{BEFORE}/").rpartition("/")
        if key not in PUBLISHED.values():
            raise CheckError(f"{pack.path}: {name} is no table that is read of an earlier publication.")
        pack.extract(name, Path(warehouse.store.location) / "tables" / key / file)
        tables.setdefault(key, {"version": 0, "files": []})["files"].append(file)
    if tables:
        warehouse.lake.publish({"code_revision": "", "inputs": {}, "tables": tables, "checks": []})


def _build(builder: Builder, months: Sequence[str], console: Console) -> tuple[Builder, list[Built]]:
    built, steps = [], builder.steps(months)
    with console.steps(len(steps)) as progress:
        for name, month in steps:
            built.append(builder.build(name, month))
            progress.step(builder.catalog[name].key, month or "")
    return builder, built
