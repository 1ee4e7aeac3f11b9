"""Brings the raw tables we write ourselves up to date: training runs, and capacity that was reserved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import polars as pl

from pipelines.base import resources
from pipelines.base.code import code_digest
from pipelines.base.parse import parse_json
from pipelines.ingest.inventory.commitments import commitments_fingerprint, read_commitments
from pipelines.ingest.inventory.registrations import read_registrations, registrations_fingerprint
from pipelines.ingest.inventory.reservations import read_reservations, reservations_fingerprint
from pipelines.ingest.runs.tracker import READERS, read_all, runs_fingerprint
from pipelines.models.catalog import COMMITMENTS, PROOF_TABLES, RAW_TABLES, RESERVATIONS
from pipelines.models.warehouse import Warehouse

# Where the sentences about what was read with a doubt are kept.
RUN_WARNINGS = "checks/raw/tracker.json"
RESERVATION_WARNINGS = f"checks/raw/{RESERVATIONS}.json"
REGISTRATION_WARNINGS = "checks/raw/proof.json"
COMMITMENT_WARNINGS = f"checks/raw/{COMMITMENTS}.json"

# The modules whose code makes the raw tables; of runs, one more for each kind of source (READERS).
RUN_CODE = "pipelines.ingest.runs.tracker"
RESERVATION_CODE = "pipelines.ingest.inventory.reservations"
REGISTRATION_CODE = "pipelines.ingest.inventory.registrations"
COMMITMENT_CODE = "pipelines.ingest.inventory.commitments"
# The list that instance types of reservations are looked up in.
_INSTANCE_TYPES = resources.REFERENCE / "ref_instance_type.csv"

Read = Callable[[], tuple[dict[str, pl.DataFrame], list[str]]]


def run_code(kinds: Collection[str]) -> tuple[str, ...]:
    """The modules whose code makes the tracker tables of sources of these kinds."""
    return (RUN_CODE, *(READERS[kind] for kind in sorted(set(kinds))))


def refresh_runs(warehouse: Warehouse) -> dict[str, int]:
    """The tracker tables, from every run source; rows by table."""

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        before = {table: warehouse.lake.files(f"raw/{table}") for table in RAW_TABLES}
        records = read_all(warehouse.settings.runs, {table: pl.read_parquet(of) for table, of in before.items() if of})
        return records.tables, records.warnings

    seals = [runs_fingerprint(source) for source in warehouse.settings.runs]
    seals.append(code_digest(*run_code([source.kind for source in warehouse.settings.runs])))
    return _bring(warehouse, RAW_TABLES, seals, RUN_WARNINGS, read)


def refresh_reservations(warehouse: Warehouse) -> int:
    """The table of reserved capacity, from every source of it; its rows."""

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        told = read_reservations(warehouse.settings.reservations)
        return {RESERVATIONS: told.table}, told.warnings

    seals = [reservations_fingerprint(source) for source in warehouse.settings.reservations]
    seals += [code_digest(RESERVATION_CODE), hashlib.sha256(_INSTANCE_TYPES.read_bytes()).hexdigest()]
    return _bring(warehouse, (RESERVATIONS,), seals, RESERVATION_WARNINGS, read)[RESERVATIONS]


def refresh_registrations(warehouse: Warehouse) -> dict[str, int]:
    """The tables of pre-registrations; rows by table. SourceError when one that was recorded is another now."""

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        files = warehouse.lake.files(f"raw/{PROOF_TABLES[0]}")
        known = pl.read_parquet(files).select("registration", "seal").rows() if files else []
        return read_registrations(warehouse.settings.proof, dict(known)), []

    seals = [registrations_fingerprint(warehouse.settings.proof), code_digest(REGISTRATION_CODE)]
    return _bring(warehouse, PROOF_TABLES, seals, REGISTRATION_WARNINGS, read)


def refresh_commitments(warehouse: Warehouse) -> int:
    """The table of commitments told beside the bill, from every source of them; its rows."""

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        told = read_commitments(warehouse.settings.commitments)
        return {COMMITMENTS: told.table}, told.warnings

    seals = [commitments_fingerprint(source) for source in warehouse.settings.commitments]
    seals.append(code_digest(COMMITMENT_CODE))
    return _bring(warehouse, (COMMITMENTS,), seals, COMMITMENT_WARNINGS, read)[COMMITMENTS]


def recorded_warnings(warehouse: Warehouse, place: str) -> list[str] | None:
    """The sentences kept at RUN_WARNINGS or RESERVATION_WARNINGS; None where they are lost or damaged."""
    try:
        told = parse_json(warehouse.store.read(place)) if warehouse.store.exists(place) else None
    except ValueError:
        return None
    return told if isinstance(told, list) and all(isinstance(sentence, str) for sentence in told) else None


def _bring(warehouse: Warehouse, tables: Sequence[str], seals: list[str], doubts: str, read: Read) -> dict[str, int]:
    """Read and commit raw tables unless they are of these seals already: of the sources, and of what reads them."""
    lake = warehouse.lake
    fingerprint = hashlib.sha256(repr(seals).encode()).hexdigest()[:16]
    keys = [f"raw/{table}" for table in tables]
    is_known = recorded_warnings(warehouse, doubts) is not None
    if not is_known or any(lake.fingerprint(key) != fingerprint or not lake.is_whole(key) for key in keys):
        frames, warnings = read()
        warehouse.store.write(doubts, json.dumps(warnings, indent=1).encode())
        for table, frame in frames.items():
            staged = warehouse.staged(f"raw/{table}", None)
            frame.write_parquet(staged)
            lake.commit(f"raw/{table}", [staged], fingerprint, None)
    return {table: sum(map(_row_count, lake.files(f"raw/{table}"))) for table in tables}


def _row_count(file: Path) -> int:
    return pl.scan_parquet(file).select(pl.len()).collect().item()
