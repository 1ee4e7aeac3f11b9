"""A publication as Dagster's events: the graph shows what `trainledger build` and the main job made."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import dagster as dg

from pipelines.defs.assets import PUBLICATION, built_metadata, check_results
from pipelines.defs.steps import asset_key
from pipelines.models.built import BuildRecords, Built
from pipelines.models.catalog import BILLS, WRITTEN_RAW, Model, load_catalog
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.part import month_of
from pipelines.warehouse.publication import Publication

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


def reported_publication(instance: dg.DagsterInstance) -> int | None:
    """The number of the publication that an instance knows; None before the first."""
    event = instance.get_latest_materialization_event(PUBLICATION)
    made = event.asset_materialization if event else None
    return int(str(made.metadata["publication"].value)) if made else None


def publication_events(warehouse: Warehouse, published: Publication, number: int | None) -> Iterator[Event]:
    """A materialization of every table, of monthly ones for each month that differs from publication `number`.

    The checks of a table follow it, and the publication comes last.
    """
    known = next((one for one in warehouse.lake.publications() if one.number == number), None)
    lake, records = warehouse.as_published(published).lake, BuildRecords(warehouse.store)
    for table, month in _new_deliveries(published, known):
        yield dg.AssetMaterialization(asset_key(table), partition=month)
    for key in WRITTEN_RAW:
        yield dg.AssetMaterialization(key.split("/"))
    for model in load_catalog().ordered:
        if not model.stored:
            yield dg.AssetMaterialization(asset_key(model.name), metadata={"computed": "where it is read"})
        elif model.key in published.tables:
            built = list(_built(model, lake, records, known))
            for month, of_month in groupby(built, lambda made: made.period and month_of(made.period)):
                yield dg.AssetMaterialization(
                    asset_key(model.name), partition=month, metadata=built_metadata(list(of_month))
                )
            yield from check_events(model, built)
    yield dg.AssetMaterialization(PUBLICATION, metadata={"publication": published.number})


def check_events(model: Model, built: Sequence[Built]) -> Iterator[dg.AssetCheckEvaluation]:
    """The results of `check_results` as events that need no step of the asset."""
    for result in check_results(model, built):
        yield dg.AssetCheckEvaluation(
            asset_key=asset_key(model.name),
            check_name=str(result.check_name),
            passed=result.passed,
            severity=result.severity,
            metadata=result.metadata,
        )


def _new_deliveries(published: Publication, known: Publication | None) -> Iterator[tuple[str, str]]:
    seen = {d["fingerprint"] for d in known.inputs["deliveries"]} if known else set()
    months = {d["billing_period"] for d in published.inputs["deliveries"] if d["fingerprint"] not in seen}
    yield from ((table, month) for table in BILLS for month in sorted(months))


def _built(model: Model, lake: Lake, records: BuildRecords, known: Publication | None) -> Iterator[Built]:
    """What a whole table came to, or each month of it that is new; one without its record is left out."""
    seen = {*known.tables.get(model.key, {"files": []})["files"]} if known else set()
    for period in [None] if model.grain == "whole" else lake.periods(model.key):
        fingerprint = lake.fingerprint(model.key, period)
        is_new = period is None or not any(name.startswith(f"{fingerprint}-") for name in seen)
        if fingerprint and is_new and (made := records.find(model.key, period, fingerprint)):
            yield made
