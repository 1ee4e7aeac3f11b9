"""What a publication was made from, bills and logs of runs: where each file lies, its size and what it holds."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.base.address import redacted
from pipelines.base.errors import SourceError, shown
from pipelines.config.settings import Settings
from pipelines.config.sources import AnswerSource, BillingSource, InvoiceSource, RunSource
from pipelines.evidence.archive import Pack
from pipelines.ingest.billing.delivery import RECORD, Delivery, RawDelivery, delivery_folder
from pipelines.ingest.inventory.invoices import ANSWERS as INVOICES
from pipelines.ingest.runs.records import open_run_store
from pipelines.ingest.runs.tracker import read_all, runs_fingerprint
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Publication
from pipelines.warehouse.storage import Store, sha256_of
from pipelines.warehouse.stores import open_store

INPUTS = "inputs.json"
# Where a bundle keeps the delivered bills: the layout of the raw store.
BILLS = "bills"
RUNS = "runs"
# Kinds that are folders of logs; the others are queried, or are folders of checkpoints.
_LOGS = ("events", "kubernetes", "mllog", "slurm")
_PLAIN = re.compile(r"[\w@=+:,. /-]+")
Logs = dict[str, dict[str, bytes]]


def recorded_inputs(warehouse: Warehouse, publication: Publication) -> dict[str, Any]:
    """Every delivery with its files, and every source of bills, reservations and invoices, without credentials."""
    return {
        "billing": [_fields(source) for source in warehouse.settings.billing],
        "deliveries": [_delivery(warehouse, publication, named) for named in publication.inputs["deliveries"]],
        "reservations": [*_inventory(warehouse.settings.reservations, publication.inputs["reservations"])],
        "invoices": [*_inventory(warehouse.settings.invoices, publication.inputs.get("invoices", {}))],
    }


def _inventory(sources: Sequence[AnswerSource], states: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Each source that was read. Of invoices with its files; None where AWS was queried, or one has changed since."""
    for source in sources:
        if state := states.get(source.name):
            row = {"name": source.name, "kind": source.kind, "uri": redacted(source.location), "state": state}
            if isinstance(source, InvoiceSource):
                row["files"] = None
                if source.kind != "aws" and INVOICES.fingerprint(source) == state:
                    store, files, _ = INVOICES.files(source)
                    row["files"] = [_sealed(store, item.key, store.read(item.key)) for item in files]
            yield row


def _sealed(store: Store, key: str, content: bytes) -> dict[str, Any]:
    seal = hashlib.sha256(content).hexdigest()
    return {"uri": redacted(store.uri(key)), "bytes": len(content), "sha256": seal}


def bundled(warehouse: Warehouse, publication: Publication, logs: Logs) -> dict[str, bytes | Path]:
    """The logs, and the delivered bills as the raw store keeps them, by member; each must be stored."""
    members: dict[str, bytes | Path] = {
        log_member(name, key): content for name, files in logs.items() for key, content in files.items()
    }
    for named in publication.inputs["deliveries"]:
        raw = kept(warehouse, publication, named)
        assert raw
        for file in (raw.folder / RECORD, *map(raw.path, raw.files)):
            members[f"{bill_folder(named)}/{file.name}"] = file
    return members


def bill_folder(delivery: Mapping[str, Any]) -> str:
    """The folder of a pack that holds a delivered bill."""
    return f"{BILLS}/{delivery_folder(delivery['source'], delivery['billing_period'], delivery['fingerprint'])}"


def kept(warehouse: Warehouse, publication: Publication, named: Mapping[str, Any]) -> RawDelivery | None:
    """A published delivery in the raw store, fetched again where its source still has it; else None."""
    bill = warehouse.as_published(publication).bill
    try:
        stored = bill.ingest(named["billing_period"])
        raw = next(raw for raw in stored if raw.delivery.fingerprint == named["fingerprint"])
        bill.bring(raw)
    except SourceError:
        return None
    return raw


def unchanged(deliveries: Sequence[Mapping[str, Any]], sources: Sequence[BillingSource]) -> list[Delivery]:
    """The recorded deliveries, their files as they lie now.

    SourceError naming the first recorded file that is gone from its source, or is not what was read.
    """
    stores = {source.name: open_store(source.location, **source.reach) for source in sources}
    wrong, found = [], []
    for delivery in deliveries:
        name, store = delivery["source"], stores.get(delivery["source"])
        if store is None:
            raise SourceError(f"No [[billing]] source is called {name}, which the pack was made from; configure it.")
        if delivery["files"] is None:
            raise SourceError(
                f"Delivery {delivery['delivery_id']} ({name}, {delivery['billing_period']}) was replaced and no longer "
                "stored when the pack was written; only a pack with --bundle, written before, can be verified."
            )
        wrong += [sentence for file in delivery["files"] for sentence in _unlike(file, store)]
        lying = [item for file in delivery["files"] for item in store.list(file["key"]) if item.key == file["key"]]
        same = {key: delivery[key] for key in ("source", "billing_period", "delivery_id", "kind", "fingerprint")}
        found.append(Delivery(**same, manifest_key=delivery["manifest"], objects=tuple(lying), missing=()))
    if wrong:
        more = f" ({len(wrong) - 1} more files)" if len(wrong) > 1 else ""
        raise SourceError(f"{wrong[0]}{more}; restore it, or verify a pack written with --bundle.")
    return found


def _fields(source: BillingSource | RunSource) -> dict[str, Any]:
    fields = source.model_dump(mode="json", exclude={"profile"})
    return {**fields, "location": redacted(source.location), "endpoint_url": redacted(source.endpoint_url)}


def _delivery(warehouse: Warehouse, publication: Publication, named: Mapping[str, Any]) -> dict[str, Any]:
    raw = kept(warehouse, publication, named)
    source = next((source for source in warehouse.settings.billing if source.name == named["source"]), None)
    store = open_store(source.location, **source.reach) if source else None
    where: Callable[[str], str | None] = (lambda key: redacted(store.uri(key))) if store else (lambda key: None)
    files = [_file(raw, at, where, store) for at in range(len(raw.files))] if raw else None
    return {**named, "manifest_uri": where(named["manifest"]), "files": files}


def _file(raw: RawDelivery, at: int, where: Callable[[str], str | None], store: Store | None) -> dict[str, Any]:
    file, delivered = raw.files[at], raw.delivery.objects[at]
    as_kept = sha256_of(raw.path(file).open("rb"))
    is_kept = file.size == delivered.size
    return {
        "key": file.key,
        "uri": where(file.key),
        "bytes": delivered.size,
        "version": delivered.etag,
        # A csv is kept as Parquet, so its own bytes are read where they lie.
        "sha256": as_kept if is_kept else _digest_at(store, file.key, delivered.size),
        "kept_as": file.name,
        "kept_sha256": as_kept,
        "line_count": file.line_count,
        "billed_total": file.billed_total,
    }


def _digest_at(store: Store | None, key: str, size: int) -> str | None:
    """The digest of the file at a key, if it still has the size that was read; else None."""
    try:
        if store is None or not any(item.key == key and item.size == size for item in store.list(key)):
            return None
        return sha256_of(store.open(key))
    except SourceError:
        return None


def _unlike(file: Mapping[str, Any], store: Store) -> list[str]:
    where = store.uri(file["key"])
    if not any(item.key == file["key"] for item in store.list(file["key"])):
        return [f"{where} is gone"]
    if file["sha256"] is None:
        return [f"{where} was gone or changed already when the pack was written"]
    is_same = sha256_of(store.open(file["key"])) == file["sha256"]
    return [] if is_same else [f"{where} is not what the publication was made from"]


def run_logs(settings: Settings, publication: Publication) -> Logs:
    """The files of each source of logs that is as it was when it was read, by source and key."""
    named = publication.inputs["runs"]
    logs: Logs = {}
    for source in settings.runs:
        if source.kind in _LOGS and source.name in named and runs_fingerprint(source) == named[source.name]:
            store = open_run_store(source)
            keys = [item.key for item in store.list()]
            if all(map(_PLAIN.fullmatch, keys)):
                logs[source.name] = {key: store.read(key) for key in keys}
    return logs


def recorded_runs(settings: Settings, publication: Publication, logs: Logs) -> list[dict[str, Any]]:
    """Every source of runs; of logs each file, null where they are no logs or have changed since they were read."""
    recorded = []
    for source in settings.runs:
        files = None
        if source.name in logs:
            store = open_run_store(source)
            files = [{"key": key, **_sealed(store, key, content)} for key, content in logs[source.name].items()]
        recorded.append({**_fields(source), "state": publication.inputs["runs"].get(source.name), "files": files})
    return recorded


def log_member(source: str, key: str) -> str:
    return f"{RUNS}/{source}/{key}"


def has_all_logs(pack: Pack, inputs: Mapping[str, Any]) -> bool:
    """Whether a pack has the logs of all its sources of runs."""
    return pack.about["has_bills"] and all(source["files"] is not None for source in inputs["runs"])


def read_again(pack: Pack, inputs: Mapping[str, Any], place: Path, today: date) -> dict[str, pl.DataFrame] | None:
    """The records of the runs by table, read from the logs in a pack as on the day they were first; None where it
    does not have those of all."""
    if not inputs["runs"] or not has_all_logs(pack, inputs):
        return None
    sources = []
    for source in inputs["runs"]:
        folder = pack.path_below(place, source["name"])
        try:
            folder.mkdir(parents=True)
            fields = {name: value for name, value in source.items() if name in RunSource.model_fields}
            sources.append(RunSource(**{**fields, "location": str(folder), "endpoint_url": None}))
        except (FileExistsError, ValueError):
            raise pack.malformed(f"source {shown(source['name'])} of {INPUTS}") from None
        for file in source["files"]:
            pack.extract(log_member(source["name"], file["key"]), folder, file["key"])
    return read_all(sources, today=today).tables
