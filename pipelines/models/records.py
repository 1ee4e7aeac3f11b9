"""Refreshes the raw tables that we write ourselves: of runs, servers, capacity, commitments, invoices and proof."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from pipelines.base.code import code_digest
from pipelines.base.parse import parse_json
from pipelines.ingest.inventory.commitments import commitments_fingerprint, read_commitments
from pipelines.ingest.inventory.invoices import invoices_fingerprint, read_invoices
from pipelines.ingest.inventory.offers import offers_fingerprint, read_offers
from pipelines.ingest.inventory.registrations import read_registrations, registrations_fingerprint
from pipelines.ingest.inventory.reservations import read_reservations, reservations_fingerprint
from pipelines.ingest.runs.tracker import READERS, read_all, runs_fingerprint
from pipelines.ingest.serving.sources import read_serving, serving_fingerprint
from pipelines.models.catalog import (
    COMMITMENTS,
    INVOICES,
    OFFERS,
    PROOF_TABLES,
    RAW_TABLES,
    RESERVATIONS,
    SERVING_TABLES,
)
from pipelines.models.warehouse import Warehouse

if TYPE_CHECKING:
    from pipelines.config.settings import Settings

Read = tuple[Mapping[str, pl.DataFrame], Sequence[str]]
"""Each table, and the warnings of reading."""


@dataclass(frozen=True)
class Records:
    """Raw tables that are read together and committed whole; calling it brings them up to date.

    `module` is the one whose code makes the tables; of runs, there is one more for each kind of source (`run_code`).
    """

    tables: tuple[str, ...]
    module: str
    sources: Callable[[Settings], Sequence[Any]]
    fingerprint: Callable[[Any], str]
    read: Callable[[Warehouse], Read]

    def __call__(self, warehouse: Warehouse) -> dict[str, int]:
        """Read and commit the tables unless their sources and the code are unchanged; rows by table."""
        lake, sources = warehouse.lake, self.sources(warehouse.settings)
        kinds = [source.kind for source in sources] if self.module == RUN_CODE else []
        seals = [*map(self.fingerprint, sources), code_digest(*run_code(kinds) if kinds else (self.module,))]
        # Reservations are checked against the list of instance types.
        seals.append(repr(sorted(warehouse.settings.accelerator_families.items())))
        fingerprint = hashlib.sha256(repr(seals).encode()).hexdigest()[:16]
        keys = [f"raw/{table}" for table in self.tables]
        is_known = self._recorded(warehouse) is not None
        if not is_known or any(lake.fingerprint(key) != fingerprint or not lake.is_whole(key) for key in keys):
            frames, warnings = self.read(warehouse)
            warehouse.store.write(self._key, json.dumps(list(warnings), indent=1).encode())
            for table, frame in frames.items():
                staged = warehouse.staged(f"raw/{table}", None)
                frame.write_parquet(staged)
                lake.commit(f"raw/{table}", [staged], fingerprint, None)
        return {
            table: pl.scan_parquet(lake.files(key)).select(pl.len()).collect().item()
            for table, key in zip(self.tables, keys, strict=True)
        }

    def warnings(self, warehouse: Warehouse) -> list[str]:
        """The warnings of reading the tables as they are; empty where they are lost or damaged."""
        return self._recorded(warehouse) or []

    @property
    def _key(self) -> str:
        return f"checks/raw/{self.tables[0]}.json"

    def _recorded(self, warehouse: Warehouse) -> list[str] | None:
        try:
            found = parse_json(warehouse.store.read(self._key)) if warehouse.store.exists(self._key) else None
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(sentence, str) for sentence in found) else None


def _runs(warehouse: Warehouse) -> Read:
    before = {table: warehouse.lake.files(f"raw/{table}") for table in RAW_TABLES}
    found = read_all(
        warehouse.settings.runs, {table: pl.read_parquet(files) for table, files in before.items() if files}
    )
    return found.tables, found.warnings


def _serving(warehouse: Warehouse) -> Read:
    found = read_serving(warehouse.settings.serving)
    return found.tables, found.warnings


def _reservations(warehouse: Warehouse) -> Read:
    found = read_reservations(warehouse.settings.reservations, warehouse.settings.accelerator_families)
    return {RESERVATIONS: found.table}, found.warnings


def _commitments(warehouse: Warehouse) -> Read:
    found = read_commitments(warehouse.settings.commitments)
    return {COMMITMENTS: found.table}, found.warnings


def _invoices(warehouse: Warehouse) -> Read:
    found = read_invoices(warehouse.settings.invoices)
    return {INVOICES: found.table}, found.warnings


def _offers(warehouse: Warehouse) -> Read:
    found = read_offers(warehouse.settings.capacity_offers, warehouse.settings.accelerator_families)
    return {OFFERS: found.table}, found.warnings


def _registrations(warehouse: Warehouse) -> Read:
    """SourceError when a recorded one has changed."""
    files = warehouse.lake.files(f"raw/{PROOF_TABLES[0]}")
    known = pl.read_parquet(files).select("registration", "seal").rows() if files else []
    return read_registrations(warehouse.settings.proof, dict(known)), []


RUN_CODE = "pipelines.ingest.runs.tracker"
# Sources other than the bill, by the name of the step.
RECORDS: Mapping[str, Records] = {
    "training runs": Records(RAW_TABLES, RUN_CODE, lambda settings: settings.runs, runs_fingerprint, _runs),
    "serving": Records(
        SERVING_TABLES,
        "pipelines.ingest.serving.sources",
        lambda settings: settings.serving,
        serving_fingerprint,
        _serving,
    ),
    "reservations": Records(
        (RESERVATIONS,),
        "pipelines.ingest.inventory.reservations",
        lambda settings: settings.reservations,
        reservations_fingerprint,
        _reservations,
    ),
    "commitments": Records(
        (COMMITMENTS,),
        "pipelines.ingest.inventory.commitments",
        lambda settings: settings.commitments,
        commitments_fingerprint,
        _commitments,
    ),
    "invoices": Records(
        (INVOICES,),
        "pipelines.ingest.inventory.invoices",
        lambda settings: settings.invoices,
        invoices_fingerprint,
        _invoices,
    ),
    "capacity offers": Records(
        (OFFERS,),
        "pipelines.ingest.inventory.offers",
        lambda settings: settings.capacity_offers,
        offers_fingerprint,
        _offers,
    ),
    "registrations": Records(
        PROOF_TABLES,
        "pipelines.ingest.inventory.registrations",
        lambda settings: (settings.proof,),
        registrations_fingerprint,
        _registrations,
    ),
}


def run_code(kinds: Collection[str]) -> tuple[str, ...]:
    """The modules whose code makes the tracker tables of sources of these kinds."""
    return (RUN_CODE, *(READERS[kind] for kind in sorted(set(kinds))))
