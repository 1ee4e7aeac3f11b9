"""Refreshes the raw tables that we write ourselves: training runs, reservations, commitments and registrations."""

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

# Keys of the store under which the warnings of reading are kept.
RUN_WARNINGS = "checks/raw/tracker.json"
RESERVATION_WARNINGS = f"checks/raw/{RESERVATIONS}.json"
REGISTRATION_WARNINGS = "checks/raw/proof.json"
COMMITMENT_WARNINGS = f"checks/raw/{COMMITMENTS}.json"

# The modules whose code makes the raw tables; of runs, one more for each kind of source (READERS).
RUN_CODE = "pipelines.ingest.runs.tracker"
RESERVATION_CODE = "pipelines.ingest.inventory.reservations"
REGISTRATION_CODE = "pipelines.ingest.inventory.registrations"
COMMITMENT_CODE = "pipelines.ingest.inventory.commitments"
# The list of instance types that reservations are checked against.
_INSTANCE_TYPES = resources.REFERENCE / "ref_instance_type.csv"


def run_code(kinds: Collection[str]) -> tuple[str, ...]:
    """The modules whose code makes the tracker tables of sources of these kinds."""
    return (RUN_CODE, *(READERS[kind] for kind in sorted(set(kinds))))


def refresh_runs(warehouse: Warehouse) -> dict[str, int]:
    """Refresh the tracker tables from every run source; rows by table."""
    sources = warehouse.settings.runs

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        before = {table: warehouse.lake.files(f"raw/{table}") for table in RAW_TABLES}
        records = read_all(sources, {table: pl.read_parquet(files) for table, files in before.items() if files})
        return records.tables, records.warnings

    seals = [*map(runs_fingerprint, sources), code_digest(*run_code([source.kind for source in sources]))]
    return _refresh(warehouse, RAW_TABLES, seals, RUN_WARNINGS, read)


def refresh_reservations(warehouse: Warehouse) -> dict[str, int]:
    """Refresh the table of reserved capacity from its sources; rows by table."""
    sources = warehouse.settings.reservations

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        found = read_reservations(sources)
        return {RESERVATIONS: found.table}, found.warnings

    seals = [*map(reservations_fingerprint, sources), code_digest(RESERVATION_CODE)]
    seals.append(hashlib.sha256(_INSTANCE_TYPES.read_bytes()).hexdigest())
    return _refresh(warehouse, (RESERVATIONS,), seals, RESERVATION_WARNINGS, read)


def refresh_registrations(warehouse: Warehouse) -> dict[str, int]:
    """Refresh the tables of pre-registrations; rows by table. SourceError when a recorded one has changed."""
    source = warehouse.settings.proof

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        files = warehouse.lake.files(f"raw/{PROOF_TABLES[0]}")
        known = pl.read_parquet(files).select("registration", "seal").rows() if files else []
        return read_registrations(source, dict(known)), []

    seals = [registrations_fingerprint(source), code_digest(REGISTRATION_CODE)]
    return _refresh(warehouse, PROOF_TABLES, seals, REGISTRATION_WARNINGS, read)


def refresh_commitments(warehouse: Warehouse) -> dict[str, int]:
    """Refresh the table of commitments from their sources; rows by table."""
    sources = warehouse.settings.commitments

    def read() -> tuple[dict[str, pl.DataFrame], list[str]]:
        found = read_commitments(sources)
        return {COMMITMENTS: found.table}, found.warnings

    seals = [*map(commitments_fingerprint, sources), code_digest(COMMITMENT_CODE)]
    return _refresh(warehouse, (COMMITMENTS,), seals, COMMITMENT_WARNINGS, read)


def recorded_warnings(warehouse: Warehouse, key: str) -> list[str] | None:
    """The warnings of reading kept under a key such as RUN_WARNINGS; None where they are lost or damaged."""
    try:
        found = parse_json(warehouse.store.read(key)) if warehouse.store.exists(key) else None
    except ValueError:
        return None
    return found if isinstance(found, list) and all(isinstance(sentence, str) for sentence in found) else None


def _refresh(
    warehouse: Warehouse,
    tables: Sequence[str],
    seals: list[str],
    warnings_key: str,
    read: Callable[[], tuple[dict[str, pl.DataFrame], list[str]]],
) -> dict[str, int]:
    """Read and commit raw tables unless they have these seals already: of the sources, and of the code."""
    lake = warehouse.lake
    fingerprint = hashlib.sha256(repr(seals).encode()).hexdigest()[:16]
    keys = [f"raw/{table}" for table in tables]
    is_known = recorded_warnings(warehouse, warnings_key) is not None
    if not is_known or any(lake.fingerprint(key) != fingerprint or not lake.is_whole(key) for key in keys):
        frames, warnings = read()
        warehouse.store.write(warnings_key, json.dumps(warnings, indent=1).encode())
        for table, frame in frames.items():
            staged = warehouse.staged(f"raw/{table}", None)
            frame.write_parquet(staged)
            lake.commit(f"raw/{table}", [staged], fingerprint, None)
    return {table: sum(map(_row_count, lake.files(f"raw/{table}"))) for table in tables}


def _row_count(file: Path) -> int:
    return pl.scan_parquet(file).select(pl.len()).collect().item()
