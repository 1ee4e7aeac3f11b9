"""Delta tables over Parquet: commit one table or month, list files, versions, publications.

A data file is named `<fingerprint>-<content>.parquet`: 16 hex digits of what it was made from, 16 of what
it holds; where equal rows may make other bytes, `<fingerprint>-<rows>.<content>.parquet`, with 16 of a digest of all
rows made with it. Files are never changed; `prune` alone removes them, so every publication kept stays readable.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pipelines.base.address import is_s3
from pipelines.base.errors import MalformedError, SourceError
from pipelines.base.groups import grouped
from pipelines.base.paths import below
from pipelines.warehouse import retention
from pipelines.warehouse.delta import DataFile, DeltaTables
from pipelines.warehouse.lock import Waiting, build_lock
from pipelines.warehouse.part import is_within, source_of
from pipelines.warehouse.publication import Publication, Publications
from pipelines.warehouse.retention import Pruned
from pipelines.warehouse.storage import Object, Store, settle, sha256_of
from pipelines.warehouse.storage_local import remove_temporary


@dataclass(frozen=True)
class Slice:
    """Staged files that become a table, or the part `period` of it, made from what `fingerprint` stands for.

    `rows_digest` stands for its rows, where files of the same rows may differ; else it is empty. The files are on this
    machine or, where the engine wrote them there, in the store: then `columns` is their Arrow schema.
    """

    period: str | None
    staged: tuple[Path | Object, ...]
    fingerprint: str
    rows_digest: str = ""
    columns: Any = None

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(_bytes_of(staged) for staged in self.staged)


@dataclass(frozen=True)
class _Version:
    """A version of a table: its number and its files, by name, of all parts and of each; -1 before the first."""

    number: int
    files: list[DataFile]
    parts: Mapping[str | None, list[DataFile]]

    def of(self, period: str | None) -> list[DataFile]:
        """The files of one part, of all sources of a month, or all."""
        if period is None or period in self.parts:
            return self.files if period is None else self.parts[period]
        return [file for file in self.files if file.period and is_within(file.period, period)]


class Lake:
    """The tables of one warehouse. A table is addressed as `layer/name`.

    Its newest version is looked up once and again when the lock is taken; with a `publication` it is the one that
    names. Readers name the version they want.
    """

    def __init__(self, store: Store, cache: Path, publication: Publication | None = None):
        self._store, self._cache, self._publication = store, cache, publication
        self._tables = DeltaTables(store)
        self.publications = Publications(store)
        self._newest: dict[str, _Version] = {}
        self._listed: dict[str, int] | None = None
        self._still_ours: list[Callable[[], None]] = []
        # The parts it holds; an empty name is the whole.
        self._held: list[str] = []

    def as_published(self, publication: Publication) -> Lake:
        """The same tables as a publication shows them; what was committed since is not seen."""
        return Lake(self._store, self._cache, publication)

    def files(self, table: str, period: str | None = None, version: int | None = None) -> list[Path]:
        """Local paths of a table's files, of one month or all, in the newest version or another; by name."""
        seen = self._now(table) if version is None else _version(*self._tables.files(table, version))
        return [self._local(table, file.name) for file in seen.of(period)]

    def addresses(self, table: str, period: str | None = None) -> list[str]:
        """The URIs of a table's files, of one month or all, for an engine that reads the store itself."""
        return self.named_addresses(table, [file.name for file in self._now(table).of(period)])

    def named_addresses(self, table: str, names: Sequence[str]) -> list[str]:
        """The URIs of the files a publication names."""
        return [self._store.uri(_data_key(table, name)) for name in names]

    def named_files(self, table: str, names: list[str]) -> list[Path]:
        """Local paths of the files a publication names; needs no Delta log."""
        return [self._local(table, name) for name in names]

    def fingerprint(self, table: str, period: str | None = None) -> str | None:
        """What the newest slice was made from; None when there is none."""
        files = self._now(table).parts.get(period)
        return files[0].name.partition("-")[0] if files else None

    def is_whole(self, table: str, period: str | None = None) -> bool:
        """Whether every file of the newest slice is in the warehouse with all its bytes."""
        return all(self._size(table, file.name) == file.size for file in self._now(table).parts.get(period, ()))

    def row_count(self, table: str) -> int:
        """The rows of the newest version of a table whose files were committed from this machine."""
        return sum(file.row_count or 0 for file in self._now(table).files)

    def damaged(self, publication: Publication, only: Collection[str] | None = None) -> list[str]:
        """The files a publication names, or names for `only` these tables, that are missing or have lost bytes."""
        found = []
        for table, named in publication.tables.items():
            if only is not None and table not in only:
                continue
            # Older records have no sizes.
            sizes = named.get("bytes") or [None] * len(named["files"])
            for name, size in zip(named["files"], sizes, strict=True):
                found_size = self._size(table, name)
                if found_size is None or size not in (None, found_size):
                    found.append(self._store.uri(_data_key(table, name)))
        return found

    def altered(self, table: str, names: list[str]) -> list[Path]:
        """Of a table's named files those that do not hold what their names promise."""
        seals = [name.partition("-")[0] for name in names]
        # Files of one slice are named by all of them in their order, which the names do not show. Those that an engine
        # wrote to the store are named by the store's digest.
        single = [name for name, seal in zip(names, seals, strict=True) if seals.count(seal) == 1]
        compared = [name for name in single if not (self._is_remote and _contents(name)[0])]
        return [file for name in compared if _content(file := self._local(table, name))[:16] != _contents(name)[1]]

    def contents(self, table: str, period: str | None = None) -> list[str]:
        """Digests of what a table, or one month of it, holds; equal digests mean equal rows."""
        # Sorted by digest: a name begins with the fingerprint of the inputs, which may differ for equal rows.
        held = ((file.period, *_contents(file.name)) for file in self._now(table).of(period))
        return sorted(digest for _, digest in {(part, rows or content) for part, rows, content in held})

    def periods(self, table: str) -> list[str]:
        """The parts a table holds: months, or months of each source."""
        return sorted(period for period in self._now(table).parts if period)

    def commit(self, table: str, staged: list[Path], fingerprint: str, period: str | None) -> int:
        """Move staged files in and replace the table, or one part of it, in one Delta commit.

        Returns the new version, or the newest one when it holds just these files already. `fingerprint` is 16
        hex digits and differs between parts. Raises CheckError when another writer committed meanwhile.
        """
        return self.commit_slices(table, [Slice(period, tuple(staged), fingerprint)])

    def commit_slices(self, table: str, slices: Sequence[Slice]) -> int:
        """`commit` for several parts of a table, or the whole of it, in one Delta commit for each source."""
        import pyarrow as pa

        kept = {period: {file.name for file in files} for period, files in self._now(table).parts.items()}
        changed: list[tuple[Slice, list[str]]] = []
        for part in slices:
            names = _names(part)
            if kept.get(part.period) == set(names):
                for staged, name in zip(part.staged, names, strict=True):
                    lies_whole = self._size(table, name) == _bytes_of(staged)
                    self._remove(staged) if lies_whole else self._take_in(table, staged, name)
                continue
            changed.append((part, names))
            kept[part.period] = set()
        if not changed:
            return self._now(table).number
        taken = [name for names in kept.values() for name in names] + [name for _, names in changed for name in names]
        if len(set(taken)) < len(taken):
            raise ValueError(f"{table}: two slices may not share a file; give each part its own fingerprint")
        files, columns = [], None
        for part, names in changed:
            for staged, name in zip(part.staged, names, strict=True):
                row_count, held = _facts_of(staged, part.columns)
                files.append(DataFile(name, part.period, _bytes_of(staged), row_count))
                columns = columns or held
                self._take_in(table, staged, name)
        # Engines differ in what they mark as not null; nulls are the business of a table's checks.
        nullable = pa.schema([column.with_nullable(True) for column in columns or ()])
        return self._replace(table, files, nullable, [part.period for part, _ in changed])

    def drop(self, table: str, period: str) -> None:
        """Empty a part whose delivery vanished; one that is not there is fine."""
        if period in self.periods(table):
            self._replace(table, [], None, [period])

    def record(self, table: str) -> dict[str, Any]:
        """The newest version of a table as a publication names it: its files, their bytes and months."""
        seen = self._now(table)
        return {
            "version": seen.number,
            "files": [file.name for file in seen.files],
            "bytes": [file.size for file in seen.files],
            "periods": [file.period for file in seen.files],
        }

    def prune(
        self, now: datetime, days: int, named: Collection[int], known: Collection[str], *, dry_run: bool = False
    ) -> Pruned:
        """Remove what no kept publication needs (`retention.kept`); the caller holds the lock.

        `known` are the tables that builds still make, whose newest version stays.
        """
        every = self.publications.all()
        kept = retention.kept(every, now, days, named)
        numbers = {one.number for one in kept}
        removed = [one for one in every if one.number not in numbers]
        items = self._store.list("tables/")
        logs = retention.logs(items)
        names = retention.named_files(kept)
        names |= {(table, file.name) for table in logs.keys() & known for file in self._now(table).files}
        files = retention.unnamed(items, names)
        # Of a table that no build makes and no publication shows, the log goes too.
        dropped = logs.keys() - known - {table for table, _ in names}
        files += [item for table in dropped for entries in logs[table].values() for item in entries]
        # Older records do not name the month of each file, which is then read from the log of that time.
        has_months = all("periods" in held for one in kept for held in one.tables.values())
        if not dry_run:
            self._check_hold()
            self.publications.remove(removed)
        for table, entries in logs.items() if has_months else ():
            if table in known and retention.is_long(entries):
                first = max(entries) if dry_run else self._tables.checkpoint(table)
                files += [item for version, held in entries.items() if version < first for item in held]
        for item in files if not dry_run else ():
            # A build that began after a loss may have committed a file of this name again.
            self._check_hold()
            self._store.delete(item.key)
            if self._is_remote:
                below(self._cache, item.key.removeprefix("tables/")).unlink(missing_ok=True)
        self._listed = None
        if not self._is_remote and not dry_run:
            remove_temporary(Path(self._store.location), now - timedelta(days=1))
        return Pruned(tuple(one.number for one in removed), len(kept), len(files), sum(item.size for item in files))

    def publish(self, record: dict[str, Any]) -> Publication:
        """Write the next publication record; from then on readers see its tables.

        `record` holds code_revision, inputs, tables and checks. CheckError when another build was first.
        """
        self._check_hold()
        return self.publications.add(record)

    @contextmanager
    def lock(self, *parts: str, waiting: Waiting | None = None) -> Iterator[None]:
        """Keep other builds out of the warehouse, or of its `parts` alone (`build_lock`).

        BuildBusy names the one that holds it, unless `waiting`. Who holds the whole or a month holds every part of it.
        """
        wanted = parts or ("",)
        if all(any(not one or is_within(part, one) for one in self._held) for part in wanted):
            yield
            return
        with build_lock(self._store, self._cache.parent, parts, waiting) as still_ours:
            # What another build committed before is read anew.
            self._newest.clear()
            self._listed = None
            self._still_ours.append(still_ours)
            self._held += wanted
            try:
                yield
            finally:
                self._still_ours.remove(still_ours)
                del self._held[-len(wanted) :]

    def _check_hold(self) -> None:
        for still_ours in self._still_ours:
            still_ours()

    def _now(self, table: str) -> _Version:
        if table not in self._newest:
            self._newest[table] = _version(*self._seen(table))
        return self._newest[table]

    def _seen(self, table: str) -> tuple[int, list[DataFile]]:
        """The newest version of a table and its files, or the one that the publication names."""
        if self._publication is None:
            return self._tables.files(table)
        named = self._publication.tables.get(table)
        if named is None:
            return -1, []
        if "periods" not in named:
            # Older records leave the months to the Delta log.
            return self._tables.files(table, named["version"])
        parts = zip(named["files"], named["periods"], named["bytes"], strict=True)
        return named["version"], [DataFile(name, period, size, None) for name, period, size in parts]

    def _replace(self, table: str, files: list[DataFile], schema: Any, periods: Sequence[str | None]) -> int:
        self._check_hold()
        self._newest.pop(table, None)
        for parts in grouped(filter(None, periods), source_of).values() or [None]:
            of_these = [file for file in files if parts is None or file.period in parts]
            self._newest[table] = _version(*self._tables.replace(table, of_these, schema, parts))
        return self._newest[table].number

    def _remove(self, staged: Path | Object) -> None:
        staged.unlink() if isinstance(staged, Path) else self._store.delete(staged.key)

    def _take_in(self, table: str, staged: Path | Object, name: str) -> None:
        self._listed = None
        if isinstance(staged, Object):
            return self._store.move(staged.key, _data_key(table, name))
        target = self._path(table, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if self._is_remote:
            self._store.upload(staged, _data_key(table, name))
            shutil.move(staged, target)
        else:
            settle(staged)
            staged.replace(target)

    def _local(self, table: str, name: str) -> Path:
        path, key = self._path(table, name), _data_key(table, name)
        if not path.is_file():
            try:
                self._store.download(key, path)
            except MalformedError:
                fix = "restore it, or run `trainledger build` if it is of the newest publication"
                raise SourceError(f"{self._store.uri(key)} is missing; {fix}.") from None
        return path

    def _path(self, table: str, name: str) -> Path:
        """The path of a file on this machine; its name comes from a publication or a Delta log."""
        return below(self._cache if self._is_remote else Path(self._store.location) / "tables", f"{table}/{name}")

    def _size(self, table: str, name: str) -> int | None:
        """A file's size in the warehouse; None where it is missing."""
        if not self._is_remote:
            path = self._path(table, name)
            return path.stat().st_size if path.is_file() else None
        if self._listed is None:
            # One listing instead of a request for every file.
            self._listed = {item.key: item.size for item in self._store.list("tables/")}
        return self._listed.get(_data_key(table, name))

    @property
    def _is_remote(self) -> bool:
        return is_s3(self._store.location)


def _version(number: int, files: Iterable[DataFile]) -> _Version:
    ordered = sorted(files, key=lambda file: file.name)
    return _Version(number, ordered, grouped(ordered, lambda file: file.period))


def _data_key(table: str, name: str) -> str:
    return f"tables/{table}/{name}"


def _bytes_of(staged: Path | Object) -> int:
    return staged.size if isinstance(staged, Object) else staged.stat().st_size


def _facts_of(staged: Path | Object, columns: Any) -> tuple[int | None, Any]:
    """The rows of a file, where it is on this machine, and the Arrow schema of its columns."""
    if isinstance(staged, Object):
        return None, columns
    from pyarrow import parquet

    held = parquet.read_metadata(staged)
    return held.num_rows, held.schema.to_arrow_schema()


def _content(staged: Path | Object) -> str:
    """A digest of a file's bytes; of an object the store has it already."""
    if isinstance(staged, Object):
        return hashlib.sha256(f"{staged.size} {staged.etag}".encode()).hexdigest()
    return sha256_of(staged.open("rb"))


def _contents(name: str) -> tuple[str, str]:
    """The digests in a file's name: of the rows of its slice, empty where it has none, and of its bytes."""
    rows, _, content = name.removesuffix(".parquet").rpartition("-")[2].rpartition(".")
    return rows, content


def _names(part: Slice) -> list[str]:
    """Each file's name. Of several files each name covers all: two commits share every file or none."""
    contents = [_content(each) for each in part.staged]
    rows = f"{hashlib.sha256(part.rows_digest.encode()).hexdigest()[:16]}." if part.rows_digest else ""
    if len(contents) > 1:
        whole = " ".join(contents)
        contents = [hashlib.sha256(f"{number} {whole}".encode()).hexdigest() for number in range(len(contents))]
    return [f"{part.fingerprint}-{rows}{content[:16]}.parquet" for content in contents]
