"""One warehouse, opened: its store, its tables, its delivered bills and the local folders work is done in."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import UTC
from functools import cached_property, partial
from pathlib import Path
from shutil import disk_usage
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from pipelines.base.address import is_s3
from pipelines.base.code import code_digest
from pipelines.base.dates import moment_of
from pipelines.base.errors import TrainledgerError, UsageError, counted, is_full, shown_bytes
from pipelines.base.parse import parse_json
from pipelines.base.parse_cache import cache_folder
from pipelines.base.paths import below
from pipelines.engine import open_engine
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.lock import TABLES
from pipelines.warehouse.part import file_name
from pipelines.warehouse.pseudonyms import Pseudonyms
from pipelines.warehouse.publication import Publication
from pipelines.warehouse.storage import Object, Store
from pipelines.warehouse.stores import open_store

if TYPE_CHECKING:
    import polars as pl

    from pipelines.config.settings import Settings
    from pipelines.ingest.billing.raw import RawBill

# Disk space of a build: tables, their copy for BI twice, and bill lines in several tables; measured on bills of 9 lines
# to 36 months, which took 60 to 80% of it. Runs and spilled rows come on top.
_FIXED_BYTES, _PER_BILL_BYTE = 32 << 20, 6
# A disk may have room and no place for the names of files.
_FEW_FILES = 100
# Folders whose files hold ids as delivered, also where [privacy] has pseudonyms published.
_PRIVATE_TABLES = ("raw", "staging", "core", "private")
PRIVATE = ("raw", "staging", "cache", "checks/raw", *(f"tables/{layer}" for layer in _PRIVATE_TABLES))
# The files of `keep_teams`, in a folder that is closed to other users.
_TEAMS = "tables/private/declared_team"

_CACHE_FIX = "set HOME or XDG_CACHE_HOME to a folder that can be written"


class Warehouse:
    """Everything below `warehouse.location`, and a local work folder (the same one when it is a folder)."""

    def __init__(self, settings: Settings):
        self.settings = settings
        options = settings.warehouse
        self.store: Store = open_store(options.location, **options.reach)
        self.work = work_folder(options.location, options.endpoint_url)
        try:
            self.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fix = _CACHE_FIX if is_s3(options.location) else "choose another location under [warehouse]"
            raise UsageError(f"{self.work} cannot be made ({error.strerror}); {fix}.") from None
        self.lake = Lake(self.store, self.work / "cache")
        # Answers of APIs by source: a build queries each source once.
        self.answered: dict[str, Any] = {}

    def as_published(self, publication: Publication) -> Warehouse:
        """The warehouse as a publication shows it: its versions of the tables, the deliveries and the
        declarations of teams it was made from."""
        from pipelines.config.policy import Policy
        from pipelines.config.teams import Teams
        from pipelines.ingest.billing.raw import PublishedBill

        seen = copy(self)
        seen.lake = self.lake.as_published(publication)
        inputs = publication.inputs
        is_kept = self.store.exists(kept := _teams_key(inputs))
        recorded = {
            "tags": {name: tuple(keys) for name, keys in inputs["tags"].items()},
            "policy": Policy.recorded(inputs["policy"]),
            "teams": Teams.recorded(parse_json(self.store.read(kept)) if is_kept else inputs.get("teams", [])),
        }
        seen.settings = self.settings.model_copy(update=recorded)
        seen.bill = PublishedBill(self.work / "raw", seen.settings, inputs["deliveries"], **self._raw_place)
        return seen

    def keep_teams(self, inputs: Mapping[str, Any]) -> None:
        """Keep the declarations of teams as declared where the record, which has `inputs`, has pseudonyms: views of the
        ledger join them to accounts."""
        if self.pseudonyms:
            self.store.write(_teams_key(inputs), json.dumps(self.settings.teams.record()).encode())

    def forget_teams(self, kept: Sequence[Publication]) -> None:
        """Remove the declarations of teams that no publication of those `kept` was made from."""
        keys = {_teams_key(one.inputs) for one in kept}
        for item in self.store.list(f"{_TEAMS}/"):
            if item.key not in keys:
                self.store.delete(item.key)

    @cached_property
    def bill(self) -> RawBill:
        """The delivered bills of all sources."""
        # Commands that only read a publication do not need it.
        from pipelines.ingest.billing.raw import RawBill

        return RawBill(self.work / "raw", self.settings, **self._raw_place)

    @property
    def _raw_place(self) -> dict[str, Any]:
        """Arguments of `RawBill`: the bucket of the raw store, and what opens a cluster's engine; each may be None."""
        options = self.settings.warehouse
        cluster = partial(open_engine, options) if options.engine == "spark" else None
        return {"store": self.store if is_s3(options.location) else None, "cluster": cluster}

    @cached_property
    def pseudonyms(self) -> Pseudonyms:
        """What stands for account ids and user names in what is published; UsageError without their key."""
        code = code_digest("pipelines.warehouse.pseudonyms")
        return Pseudonyms(self.settings.privacy, self.settings.tag_keys["owner"], code)

    @property
    def staging(self) -> Path:
        """The folder of unfinished files."""
        return self.work / "staging"

    @cached_property
    def spill(self) -> Path:
        """Where the engine spills what memory cannot hold; builds of other months have folders of their own."""
        return self.staging / f"spill-{secrets.token_hex(8)}"

    @property
    def is_on_store(self) -> bool:
        """Whether the engine reads and writes the bucket itself: nothing of a bill's size passes this machine."""
        return self.settings.warehouse.engine == "spark" and is_s3(self.settings.warehouse.location)

    def staged_uri(self, key: str, period: str | None) -> str:
        """Where an engine that works on the store leaves a table's new files until its checks have passed."""
        return self.store.uri(_staged_key(key, period))

    def staged_objects(self, key: str, period: str | None) -> list[Object]:
        """A table's new files as an engine that works on the store left them."""
        return self.store.list(f"{_staged_key(key, period)}/part-")

    def staged_here(self, key: str, period: str | None) -> list[Path]:
        """A table's new files on this machine, brought here where the engine left them in the store."""
        staged = self.staged(key, period)
        if self.is_on_store:
            shutil.rmtree(staged, ignore_errors=True)
            for number, item in enumerate(self.staged_objects(key, period)):
                self.store.download(item.key, staged / f"part-{number:05d}.parquet")
        return sorted(staged.glob("part-*.parquet")) if staged.is_dir() else [staged]

    @contextmanager
    def lent(self, frame: pl.DataFrame) -> Iterator[Path | str]:
        """A small frame as a Parquet file that the engine can read."""
        name = f"made-{secrets.token_hex(8)}.parquet"
        path = self.staged(name, None)
        frame.write_parquet(path, compression="lz4")
        try:
            if self.is_on_store:
                self.store.upload(path, f"staging/{name}")
            yield self.store.uri(f"staging/{name}") if self.is_on_store else path
        finally:
            path.unlink()
            if self.is_on_store:
                self.store.delete(f"staging/{name}")

    def staged(self, key: str, period: str | None) -> Path:
        """The path of a table's new file until its checks have passed."""
        path = below(self.staging, f"{file_name(period or TABLES)}/{key}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def disk_errors(self) -> Iterator[None]:
        """UsageError for a full disk, whatever reports it: which folder, what is free and what the bill takes."""
        try:
            yield
        except Exception as error:
            if not is_full(error):
                raise
            places = (self.work, Path(gettempdir()))
            free, folder = min((disk_usage(place).free, place) for place in places)
            room, takes = f"{shown_bytes(free)} free", ""
            for place, there in ((place, os.statvfs(place)) for place in places):
                if there.f_files and there.f_favail < _FEW_FILES:
                    folder, room = place, f"{counted(there.f_favail, 'more file', 'fit')} on it"
            # The sources may be what is unreachable.
            with suppress(TrainledgerError, OSError):
                bill = sum(item.size for delivery in self.bill.deliveries for item in delivery.objects)
                takes = f"the warehouse of this bill takes about {shown_bytes(_FIXED_BYTES + _PER_BILL_BYTE * bill)}; "
            raise UsageError(
                f"{folder}: the disk is full ({room}); {takes}free space or choose another "
                "location under [warehouse], and run it again: it continues from here."
            ) from error

    def sweep(self, parts: Collection[str] = ()) -> None:
        """Remove the unfinished files of a killed build, or those of `parts` alone; only for who holds their lock.

        With pseudonyms, what holds ids as delivered is then closed to other users of the machine.
        """
        names = {file_name(part) for part in parts}
        for folder in [*self.staging.glob("*")] if names else [self.staging]:
            if not names or not names.isdisjoint((folder.name, folder.name.partition("!")[0])):
                shutil.rmtree(folder, ignore_errors=True)
        for item in self.store.list("staging/") if self.is_on_store else ():
            name = item.key.split("/")[1]
            if not names or not names.isdisjoint((name, name.partition("!")[0])):
                self.store.delete(item.key)
        for name in PRIVATE if self.pseudonyms else ():
            folder = self.work / name
            folder.mkdir(parents=True, exist_ok=True)
            # A folder of somebody else stays as it is, and `doctor` warns.
            with suppress(PermissionError):
                folder.chmod(0o700)


def _teams_key(inputs: Mapping[str, Any]) -> str:
    """The file of `keep_teams`."""
    seal = hashlib.sha256(json.dumps(inputs.get("teams", [])).encode()).hexdigest()[:16]
    return f"{_TEAMS}/{seal}.json"


def _staged_key(key: str, period: str | None) -> str:
    return f"staging/{file_name(period or TABLES)}/{key}.parquet"


def published_of(warehouse: Warehouse, as_of: str | None = None) -> Publication:
    """The newest publication, or the one that was on a date (`moment_of`); UsageError where there is none."""
    publications = warehouse.lake.publications
    published = publications.newest() if as_of is None else publications.as_of(moment_of(as_of))
    if published:
        _refuse_unveiled(warehouse, published)
        return published
    location = warehouse.settings.warehouse.location
    first = next(iter(publications.all()), None)
    if first is None:
        raise UsageError(f"{location} holds no publication yet; run `trainledger build` first.")
    # Those before the first kept one were pruned.
    which = "first" if first.number == 1 else "first kept"
    raise UsageError(
        f"{location} held no publication yet on {as_of}; the {which} was published at "
        f"{first.published_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}."
    )


def _refuse_unveiled(warehouse: Warehouse, published: Publication) -> None:
    has = published.inputs.get("privacy", {}).get("pseudonyms", ())
    if lacks := sorted({*warehouse.settings.privacy.pseudonyms} - {*has}):
        raise UsageError(
            f"Publication {published.number} shows {' and '.join(lacks)} as they are, for which [privacy] asks for "
            "pseudonyms; run `trainledger build`, or name a later publication."
        )


def work_folder(location: str, endpoint_url: str | None) -> Path:
    """The local work folder of a warehouse; UsageError where one on S3 has no folder to be in."""
    if not is_s3(location):
        return Path(location)
    if (cache := cache_folder()) is None:
        raise UsageError(f"{location} needs a cache on this machine and the user has no home; {_CACHE_FIX}.")
    # Two stores may each have a bucket of this name.
    name = hashlib.sha256(f"{endpoint_url or ''} {location}".encode()).hexdigest()[:16]
    return cache / name
