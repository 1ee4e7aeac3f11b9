"""Delta tables over Parquet: commit one table or month, list files, versions, publications.

A data file is named `<fingerprint>-<content>.parquet`: 16 hex digits of what it was made from, 16 of what it holds.
Files are never changed and never vacuumed, so every version a publication names stays readable.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.errors import CheckError, SourceError
from pipelines.lock import build_lock
from pipelines.storage import Store

PERIOD = "billing_period"


@dataclass(frozen=True)
class Publication:
    """One build made visible: what it was made from, the version and files of every table, every check's result."""

    number: int
    published_at: datetime
    code_revision: str
    inputs: dict[str, Any]
    tables: dict[str, dict[str, Any]]
    checks: list[dict[str, Any]]


@dataclass(frozen=True)
class _Slice:
    """A data file of the newest version and the month it holds (None in a table without months)."""

    name: str
    period: str | None


class Lake:
    """The tables of one warehouse. A table is addressed as `layer/name`."""

    def __init__(self, store: Store, cache: Path):
        self._store = store
        self._cache = cache
        self._newest: dict[str, tuple[int, list[_Slice]]] = {}

    def files(self, table: str, period: str | None = None, version: int | None = None) -> list[Path]:
        """Local paths of a table's files, of one month or all, in the newest or a given version; by name."""
        slices = self._newest_slices(table) if version is None else self._slices(table, version)[1]
        names = sorted(part.name for part in slices if period is None or part.period == period)
        return [self._local(table, name) for name in names]

    def named_files(self, table: str, names: list[str]) -> list[Path]:
        """Local paths of the files a publication names; needs no Delta log."""
        return [self._local(table, name) for name in names]

    def fingerprint(self, table: str, period: str | None = None) -> str | None:
        """What the newest slice was made from; None when there is none."""
        for part in self._newest_slices(table):
            if part.period == period:
                return part.name.partition("-")[0]
        return None

    def contents(self, table: str, period: str | None = None) -> list[str]:
        """Digests of what a table, or one month of it, holds; equal digests mean equal rows."""
        slices = self._newest_slices(table)
        names = sorted(part.name for part in slices if period is None or part.period == period)
        return [name.rpartition("-")[2].partition(".")[0] for name in names]

    def periods(self, table: str) -> list[str]:
        """The months a table holds."""
        return sorted({part.period for part in self._newest_slices(table) if part.period})

    def versions(self) -> dict[str, int]:
        """The newest version of every table touched by this object."""
        return {table: version for table, (version, _) in self._newest.items() if version >= 0}

    def commit(self, table: str, staged: list[Path], fingerprint: str, period: str | None) -> int:
        """Move staged files in and replace the table, or one month of it, in one Delta commit.

        Returns the new version. Raises CheckError when another writer committed the same slice meanwhile.
        """
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction, create_table_with_add_actions
        from pyarrow import parquet

        schema = Schema.from_arrow(parquet.read_schema(staged[0]))
        partitions = [PERIOD] if period is not None else None
        adds = [
            AddAction(
                path=self._take_in(table, path, fingerprint),
                size=size,
                partition_values={PERIOD: period} if period is not None else {},
                modification_time=int(datetime.now(UTC).timestamp() * 1000),
                data_change=True,
                stats="{}",
            )
            for path, size in [(path, path.stat().st_size) for path in staged]
        ]
        place, options = self._delta(table)
        try:
            if self._version(table) < 0:
                create_table_with_add_actions(
                    place, schema, adds, mode="error", partition_by=partitions, storage_options=options
                )
            else:
                DeltaTable(place, storage_options=options).create_write_transaction(
                    adds,
                    mode="overwrite",
                    schema=schema,
                    partition_by=partitions,
                    partition_filters=[(PERIOD, "=", period)] if period is not None else None,
                )
        except CommitFailedError as error:
            raise CheckError(f"{table} was changed by another build; run this one again.") from error
        self._newest.pop(table, None)
        return self._version(table)

    def publish(self, record: dict[str, Any]) -> Publication:
        """Write the next publication record; from then on readers see its tables.

        `record` holds code_revision, inputs, tables and checks. Raises CheckError when another build was first.
        """
        before = self.current()
        publication = Publication(
            number=before.number + 1 if before else 1, published_at=datetime.now(UTC), **record
        )
        text = json.dumps(asdict(publication), default=str, indent=1, sort_keys=True)
        if not self._store.write_new(_record_key(publication.number), text.encode()):
            raise CheckError("Another build published while this one ran; run this one again.")
        return publication

    def current(self) -> Publication | None:
        """The newest publication; None before the first."""
        keys = self._publication_keys()
        return self._read(keys[-1]) if keys else None

    def publications(self) -> list[Publication]:
        """Every publication, oldest first."""
        return [self._read(key) for key in self._publication_keys()]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other builds out of the warehouse; BuildBusy names the one that holds it."""
        with build_lock(self._store, self._cache.parent):
            # What another build committed before is read anew.
            self._newest.clear()
            yield

    def _publication_keys(self) -> list[str]:
        return [item.key for item in self._store.list("publications/") if item.key.endswith(".json")]

    def _read(self, key: str) -> Publication:
        try:
            record = json.loads(self._store.read(key))
            record["published_at"] = datetime.fromisoformat(record["published_at"])
            return Publication(**record)
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{self._store.uri(key)} is no publication record ({error}); restore it.") from None

    def _newest_slices(self, table: str) -> list[_Slice]:
        if table not in self._newest:
            self._newest[table] = self._slices(table, None)
        return self._newest[table][1]

    def _version(self, table: str) -> int:
        self._newest_slices(table)
        return self._newest[table][0]

    def _slices(self, table: str, version: int | None) -> tuple[int, list[_Slice]]:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        place, options = self._delta(table)
        try:
            delta = DeltaTable(place, version=version, storage_options=options)
        except TableNotFoundError:
            return -1, []
        actions = delta.get_add_actions(flatten=True)
        names = actions.column("path").to_pylist()
        column = f"partition.{PERIOD}"
        periods = actions.column(column).to_pylist() if column in actions.column_names else [None] * len(names)
        return delta.version(), [_Slice(name, period) for name, period in zip(names, periods, strict=True)]

    def _take_in(self, table: str, staged: Path, fingerprint: str) -> str:
        with staged.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        name = f"{fingerprint}-{content}.parquet"
        if self._is_remote:
            self._store.upload(staged, _data_key(table, name))
            local = self._cache / table / name
            local.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(staged, local)
        else:
            target = self._local(table, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged, target)
        return name

    def _local(self, table: str, name: str) -> Path:
        if not self._is_remote:
            return Path(self._store.location) / _data_key(table, name)
        path = self._cache / table / name
        if not path.is_file():
            self._store.download(_data_key(table, name), path)
        return path

    @property
    def _is_remote(self) -> bool:
        return self._store.location.startswith("s3://")

    def _delta(self, table: str) -> tuple[str, dict[str, str] | None]:
        place = self._store.uri(f"tables/{table}")
        return place, self._store.delta_options()


def _data_key(table: str, name: str) -> str:
    return f"tables/{table}/{name}"


def _record_key(number: int) -> str:
    return f"publications/{number:06d}.json"
