"""Refreshes the raw tables that we write ourselves: of runs, servers, capacity, commitments, invoices and proof."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

import polars as pl

from pipelines.base.code import code_digest
from pipelines.base.console import shortened
from pipelines.base.errors import MalformedError, SourceError
from pipelines.base.parse import parse_json
from pipelines.ingest.inventory import commitments, invoices, offers, reservations
from pipelines.ingest.inventory.registrations import (
    PUBLISHED,
    SCHEMAS,
    misnamed,
    read_registrations,
    registrations_fingerprint,
)
from pipelines.ingest.runs.records import SCHEMAS as RUN_SCHEMAS
from pipelines.ingest.runs.records import UNREAD
from pipelines.ingest.runs.tracker import READERS, read_all, runs_fingerprint
from pipelines.ingest.schema import AT, FUTURE
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
from pipelines.models.contract import OWNER
from pipelines.models.warehouse import Warehouse

if TYPE_CHECKING:
    from pipelines.config.settings import Settings
    from pipelines.ingest.inventory.answers import Inventory

# How stores report a missing file.
_MISSING = re.compile("No such file or directory|the object does not exist")
Read = tuple[Mapping[str, pl.DataFrame], Sequence[str]]
"""Each table, and the warnings of reading."""


@dataclass(frozen=True)
class Records:
    """Raw tables that are read together and committed whole; calling it brings them up to date.

    `about` has each table with its description. `module` is the one whose code makes the tables; of runs, there is one
    more for each kind of source (`run_code`).
    """

    about: Mapping[str, str]
    module: str
    sources: Callable[[Settings], Sequence[Any]]
    fingerprint: Callable[[Warehouse, Any], str]
    read: Callable[[Warehouse], Read]
    owner: str = OWNER

    def __call__(self, warehouse: Warehouse) -> dict[str, int]:
        """Read and commit the tables unless their sources and the code are unchanged; rows by table."""
        lake, sources = warehouse.lake, self.sources(warehouse.settings)
        kinds = [source.kind for source in sources] if self.module == RUN_CODE else []
        seals = [
            *(self.fingerprint(warehouse, one) for one in sources),
            code_digest(*run_code(kinds) if kinds else (self.module,)),
        ]
        # Reservations are checked against the list of instance types.
        seals.append(repr(sorted(warehouse.settings.accelerator_families.items())))
        # The same files hold other runs once such a time has come.
        if any(FUTURE in warning for warning in self.warnings(warehouse)):
            seals.append(str(datetime.now(UTC).date()))
        fingerprint = hashlib.sha256(repr(seals).encode()).hexdigest()[:16]
        keys = [f"raw/{table}" for table in self.tables]
        is_whole = self._recorded(warehouse) is not None and not lacks_files(self.warnings(warehouse))
        if not is_whole or any(lake.fingerprint(key) != fingerprint or not lake.is_whole(key) for key in keys):
            frames, warnings = self.read(warehouse)
            warehouse.store.write(self._key, json.dumps([*map(shortened, warnings)], indent=1).encode())
            for table, frame in frames.items():
                staged = warehouse.staged(f"raw/{table}", None)
                frame.write_parquet(staged)
                lake.commit(f"raw/{table}", [staged], fingerprint, None)
        return {table: lake.row_count(key) for table, key in zip(self.tables, keys, strict=True)}

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables by name."""
        return tuple(self.about)

    def fingerprints(self, warehouse: Warehouse) -> dict[str, str]:
        """The fingerprint of each source by its name."""
        return {source.name: self.fingerprint(warehouse, source) for source in self.sources(warehouse.settings)}

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


def lacks_files(warnings: Iterable[str]) -> bool:
    """Whether a file was listed and was not there when it was read: it may be back, as it was."""
    return any(_MISSING.search(warning) for warning in warnings)


def _runs(warehouse: Warehouse) -> Read:
    files = {table: warehouse.lake.files(f"raw/{table}") for table in RAW_TABLES}
    before = {table: pl.read_parquet(found) for table, found in files.items() if found}
    found = read_all(warehouse.settings.runs, before)
    unread = [found.tables[UNREAD], _gone(warehouse, before, found.tables)]
    return {**found.tables, UNREAD: pl.concat(unread)}, found.warnings


def _gone(warehouse: Warehouse, before: Mapping[str, pl.DataFrame], tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Published runs that no source records now, as rows of UNREAD without a source; those `before` stay.

    Events are only ever appended, so such a run was deleted, and with it what its failure would show.
    """
    lake, key, empty = warehouse.lake, "core/fct_run", pl.DataFrame(schema=RUN_SCHEMAS[UNREAD])
    gone = [before.get(UNREAD, empty).filter(pl.col("source_name").is_null())]
    publication = lake.publications.newest()
    if publication and key in publication.tables and not lake.damaged(publication, [key]):
        runs = pl.read_parquet(lake.named_files(key, publication.tables[key]["files"]))
        # Of no machine or several: of any.
        machine = pl.col("instance_type").replace({"unknown": None, "mixed": None})
        runs = runs.select("run_id", "workload_id", machine, "started_at", last_seen_at="ended_at")
        gone.append(pl.concat([empty, runs.cast({"started_at": AT, "last_seen_at": AT})], how="diagonal"))
    recorded = pl.concat([tables[name]["run_id"] for name in ("tracker_run", UNREAD)])
    # `run@source` is what a run was called while two sources recorded one id.
    ids = (pl.col("run_id"), pl.col("run_id").str.replace("@[^@]*$", ""))
    is_recorded = pl.any_horizontal(name.is_in(recorded.implode()) for name in ids)
    return pl.concat(gone).filter(~is_recorded).unique("run_id", keep="first").sort("run_id")


def _serving(warehouse: Warehouse) -> Read:
    found = read_serving(warehouse.settings.serving, warehouse.answered)
    return found.tables, found.warnings


def _registrations(warehouse: Warehouse) -> Read:
    """As recorded, with a warning, where a recorded one has changed or a file is malformed.

    SourceError where what is recorded of them is lost.
    """
    for key in (f"raw/{table}" for table in PROOF_TABLES):
        if not warehouse.lake.is_whole(key):
            raise SourceError(
                f"{warehouse.store.uri(f'tables/{key}')} has lost what it recorded of registrations; restore it from a "
                "backup, or remove it: each registration is then new and counts only if no result of it is published."
            )
    # Tables of earlier versions do not have what was published.
    tables = {
        name: pl.concat(
            [pl.DataFrame(schema=SCHEMAS[name]), *map(pl.read_parquet, warehouse.lake.files(f"raw/{name}"))],
            how="diagonal",
        )
        for name in PROOF_TABLES
    }
    known, runs = (table.to_dicts() for table in tables.values())
    before = {(row["registration"], ""): row["published_types"] for row in known}
    before |= {(row["registration"], row["run_id"]): row["published_types"] for row in runs if row["excluded_on"]}
    recorded = {row["registration"]: row["seal"] for row in known}
    excluded = {(row["registration"], row["run_id"]): row["excluded_on"] for row in runs if row["excluded_on"]}
    published, warnings = _published(warehouse), misnamed(warehouse.settings.proof)
    try:
        return read_registrations(warehouse.settings.proof, recorded, published, before, excluded), warnings
    except MalformedError as error:
        kept = f"{error} Until then, only what earlier builds recorded of registrations counts."
        return tables, [kept, *warnings]


def _published(warehouse: Warehouse) -> pl.DataFrame:
    """The ended runs of all publications: run_id, workload_id, instance_type and the day of the start.

    Where a publication has lost them, one run of any type, `*`, of the day that it was published.
    """
    lake, key = warehouse.lake, "core/fct_run"
    frames, lost, names = [pl.DataFrame(schema=PUBLISHED)], [], set()
    for one in lake.publications.all() if warehouse.settings.proof.registrations else ():
        if key in one.tables and lake.damaged(one, [key]):
            lost.append(("", None, "*", one.published_at.date()))
        elif key in one.tables:
            names |= {*one.tables[key]["files"]}
    for file in lake.named_files(key, sorted(names)):
        runs = pl.read_parquet(file)
        ended = runs.filter(pl.col("status") != "running", pl.col("purpose").ne_missing("compile_only"))
        frames.append(
            ended.drop_nulls("instance_type").select(
                "run_id", "workload_id", "instance_type", day=pl.col("started_at").dt.date()
            )
        )
    return pl.concat([*frames, pl.DataFrame(lost, schema=PUBLISHED, orient="row")]).unique()


def _inventory(table: str, about: str, module: ModuleType, read: Callable[[Settings], Inventory]) -> Records:
    """The table that `module` makes from answers of AWS, which its ANSWERS reads for a section of the settings."""

    def sources(settings: Settings) -> Sequence[Any]:
        return getattr(settings, module.ANSWERS.section)

    def fingerprint(warehouse: Warehouse, source: Any) -> str:
        return module.ANSWERS.fingerprint(source)

    def frames(warehouse: Warehouse) -> Read:
        found = read(warehouse.settings)
        return {table: found.table}, found.warnings

    return Records({table: about}, module.__name__, sources, fingerprint, frames)


RUN_CODE = "pipelines.ingest.runs.tracker"
# Sources other than the bill, by the name of the step.
RECORDS: Mapping[str, Records] = {
    "training runs": Records(
        {
            name: f"Training runs as recorded: {name.removeprefix('tracker_').replace('_', ' ')}s of all sources."
            for name in RAW_TABLES
        },
        RUN_CODE,
        lambda settings: settings.runs,
        lambda _, source: runs_fingerprint(source),
        _runs,
        owner="ml-platform",
    ),
    "serving": Records(
        {
            SERVING_TABLES[0]: "Servers of models as recorded. One row per stretch of time that one was up.",
            SERVING_TABLES[1]: "Traffic of servers and of managed models. One row per stretch within an hour.",
        },
        "pipelines.ingest.serving.sources",
        lambda settings: settings.serving,
        lambda warehouse, source: serving_fingerprint(source, warehouse.answered),
        _serving,
        owner="ml-platform",
    ),
    "reservations": _inventory(
        RESERVATIONS,
        "Reserved capacity and its windows, from files or from AWS. One row per part of a reservation.",
        reservations,
        lambda settings: reservations.read_reservations(settings.reservations, settings.accelerator_families),
    ),
    "commitments": _inventory(
        COMMITMENTS,
        "Savings Plans and reservations, from files or from AWS. One row per commitment.",
        commitments,
        lambda settings: commitments.read_commitments(settings.commitments),
    ),
    "invoices": _inventory(
        INVOICES,
        "Invoices, from files or from AWS. One row per line of an invoice, or per part of its total.",
        invoices,
        lambda settings: invoices.read_invoices(settings.invoices),
    ),
    "capacity offers": _inventory(
        OFFERS,
        "Capacity on offer, from files or from AWS. One row per offering of a block, or Spot placement score.",
        offers,
        lambda settings: offers.read_offers(settings.capacity_offers, settings.accelerator_families),
    ),
    "registrations": Records(
        {
            PROOF_TABLES[0]: "Pre-registrations of comparisons.",
            PROOF_TABLES[1]: "Runs that registrations pair or leave out.",
        },
        "pipelines.ingest.inventory.registrations",
        lambda settings: (settings.proof,),
        lambda _, source: registrations_fingerprint(source),
        _registrations,
    ),
}


def run_code(kinds: Collection[str]) -> tuple[str, ...]:
    """The modules whose code makes the tracker tables of sources of these kinds."""
    return (RUN_CODE, *(READERS[kind] for kind in sorted(set(kinds))))
