"""Builds every table again from what a pack records, in a clean folder, as the build that published them did."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.base.console import Console
from pipelines.base.errors import SourceError
from pipelines.config.decisions import Decisions
from pipelines.config.listed import ListPrice, Machine
from pipelines.config.policy import Policy
from pipelines.config.settings import Settings
from pipelines.config.settings import Warehouse as WarehouseSettings
from pipelines.config.sources import BillingSource
from pipelines.config.teams import Teams
from pipelines.config.terms import Terms
from pipelines.evidence.archive import Pack
from pipelines.evidence.inputs import BILLS, INPUTS, bill_folder, unchanged
from pipelines.evidence.pack import BEFORE, PUBLICATION, record_member
from pipelines.ingest.billing.delivery import RECORD, load, save_superseded
from pipelines.ingest.billing.raw import PublishedBill
from pipelines.models.build import Builder
from pipelines.models.built import Built
from pipelines.models.catalog import WRITTEN_RAW
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Publication

_DELIVERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/\d{4}-\d{2}/[0-9a-f]{64}")


def published_in(pack: Pack) -> Publication:
    """The publication a pack is of."""
    try:
        record = pack.json(PUBLICATION)
        published = Publication(**{**record, "published_at": datetime.fromisoformat(record["published_at"])})
        # What becomes part of SQL here must have the form that we write.
        parts = [(d["source"], d["billing_period"], d["fingerprint"]) for d in published.inputs["deliveries"]]
        has_records = {*published.raw} <= {*WRITTEN_RAW} and all(named["files"] for named in published.raw.values())
        is_ours = has_records and all(_DELIVERY.fullmatch("/".join(words)) for words in parts)
    except (KeyError, TypeError, ValueError, AttributeError):
        is_ours = False
    if not is_ours:
        raise pack.error(f"{PUBLICATION} is not the record of a publication")
    return published


def rebuild(pack: Pack, folder: Path, settings: Settings | None, console: Console) -> tuple[Builder, list[Built]]:
    """Every table, made in `folder` from the recorded deliveries alone; `settings` has their current locations.

    SourceError where a recorded file is gone or changed, CheckError where a table fails a check.
    """
    published, inputs = published_in(pack), pack.json(INPUTS)
    deliveries = published.inputs["deliveries"]
    # As the configuration has them now, where it has one of the name.
    now = {source.name: source for source in settings.billing} if settings else {}
    try:
        sources = tuple(now.get(source["name"]) or BillingSource(**source) for source in inputs["billing"])
        recorded = zip(deliveries, inputs["deliveries"], strict=True)
        is_ours = all(delivery.items() <= one.items() for delivery, one in recorded)
    except (LookupError, TypeError, ValueError, AttributeError):
        is_ours, sources = False, ()
    if not is_ours:
        raise pack.malformed(INPUTS)
    if pack.about["has_bills"]:
        _unpack(pack, folder / "raw", deliveries)
    else:
        for delivery in unchanged(inputs["deliveries"], sources):
            save_superseded(delivery, folder / "raw")
    warehouse = _warehouse(published, folder, () if pack.about["has_bills"] else sources, settings)
    months = sorted({str(delivery["billing_period"]) for delivery in deliveries})
    for raw in (raw for month in months for raw in warehouse.bill.ingest(month)):
        if raw.delivery.missing:
            raise SourceError(f"{raw.delivery.missing[0]} is missing; the publication was made from it.")
    _plant(pack, warehouse, published)
    builder, built = Builder(warehouse), []
    steps = builder.steps(months)
    with console.steps(len(steps)) as progress:
        for made in builder.build_steps(steps):
            built.append(made)
            progress.step(made.table, made.period or "")
    return builder, built


def _unpack(pack: Pack, raw_root: Path, deliveries: Sequence[Mapping[str, Any]]) -> None:
    """The delivered bills, as the raw store keeps them. CheckError for one that differs from its record."""
    for name in pack.below(BILLS):
        pack.extract(name, raw_root, name.removeprefix(f"{BILLS}/"))
    for delivery in deliveries:
        folder = bill_folder(delivery)
        stored = load(pack.path_below(raw_root, folder.removeprefix(f"{BILLS}/")))
        if stored is None or stored.delivery.fingerprint != delivery["fingerprint"]:
            raise pack.malformed(f"{folder}/{RECORD}")


def _warehouse(published: Publication, folder: Path, sources: Sequence, settings: Settings | None) -> Warehouse:
    like = settings.warehouse if settings else WarehouseSettings()
    # What the pack records as validated by Great Expectations is validated again.
    is_validated = any(check.get("expectation") for check in published.checks)
    # Constructed, so that the environment does not override what was recorded.
    clean = Settings.model_construct(
        warehouse=WarehouseSettings(
            location=str(folder),
            memory_limit=like.memory_limit,
            threads=like.threads,
            gate="great_expectations" if is_validated else like.gate,
        ),
        billing=tuple(sources),
        tags={name: tuple(keys) for name, keys in published.inputs["tags"].items()},
        policy=Policy.recorded(published.inputs["policy"]),
        decisions=Decisions.recorded(published.inputs.get("decisions", {})),
        teams=Teams.recorded(published.inputs.get("teams", [])),
        terms=Terms(**published.inputs.get("terms", {})),
        machines=tuple(Machine(**one) for one in published.inputs.get("machines", ())),
        prices=tuple(ListPrice(**one) for one in published.inputs.get("prices", ())),
    )
    warehouse = Warehouse(clean)
    warehouse.bill = PublishedBill(folder / "raw", clean, published.inputs["deliveries"])
    return warehouse


def _plant(pack: Pack, warehouse: Warehouse, published: Publication) -> None:
    """What the build found in its warehouse: the records of the sources, and the publication before."""
    for key, named in published.raw.items():
        members = [record_member(key, file) for file in sorted(named["files"])]
        staged = [
            pack.extract(member, warehouse.staging, f"{key}-{number}.parquet") for number, member in enumerate(members)
        ]
        warehouse.lake.commit(key, staged, "0" * 16, None)
    tables: dict[str, dict[str, Any]] = {}
    for name in pack.below(BEFORE):
        key, _, file = name.removeprefix(f"{BEFORE}/").rpartition("/")
        pack.extract(name, Path(warehouse.store.location) / "tables", f"{key}/{file}")
        tables.setdefault(key, {"version": 0, "files": []})["files"].append(file)
    if tables:
        warehouse.lake.publish(
            {"code_revision": "", "inputs": {"deliveries": [], "tags": {}}, "tables": tables, "checks": []}
        )
