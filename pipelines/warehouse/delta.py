"""The Delta log of each table: which files make up a version, and replacing a slice in one commit."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pipelines.base.aws import error_of
from pipelines.base.errors import CheckError, SourceError, UnreachableError
from pipelines.warehouse.part import month_of, part_of, source_of
from pipelines.warehouse.storage import Store

if TYPE_CHECKING:
    from deltalake import DeltaTable

T = TypeVar("T")
PERIOD, SOURCE = "billing_period", "source_name"
# What is left of an S3 fault when the table library has tried for two seconds; it repeats no answer that breaks off.
_UNREACHABLE = re.compile(
    r"max_retries|retry_timeout|error sending request|response body|timed out|Server returned error"
    r"|5\d\d (Internal|Bad|Service|Gateway|Slow)|SlowDown|connection (reset|closed|refused)",
    re.IGNORECASE,
)
# The name of an error in an answer of S3, and what a table needs there.
_ANSWER = re.compile(r"<Code>(\w+)</Code>")
_PERMISSION = "s3:ListBucket on the bucket, s3:GetObject and s3:PutObject on its objects"
# A log of which a store does not list all entries yet, or which has lost some.
_INCOMPLETE = re.compile(r"LogSegment end version|No files in log segment|found gap")
_PAUSES = (0.5, 2.0, 8.0, None)
# Delta's defaults forget log entries after 30 days and let files go after 7.
_FOREVER = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


@dataclass(frozen=True)
class DataFile:
    """A file of a table and the part of it that it holds (None in a table without parts); `size` in bytes."""

    name: str
    period: str | None
    size: int
    row_count: int | None


class DeltaTables:
    """The tables below `tables/` of one warehouse, each addressed as `layer/name`."""

    def __init__(self, store: Store):
        self._store = store
        # A table's log is read once: a commit goes on from the version that was seen, None where there was no table.
        self._seen: dict[str, DeltaTable | None] = {}
        # An opened table keeps the credentials it was opened with, which may expire before the commit.
        self._opened_with: dict[str, dict[str, str] | None] = {}

    def files(self, table: str, version: int | None = None) -> tuple[int, list[DataFile]]:
        """The newest version, or the one wanted, and its files; -1 and none when there is no such table.

        Raises SourceError for a version that does not exist or cannot be read.
        """
        with self._errors(table, version):
            delta = self._open(table, version)
            if version is None:
                self._seen[table] = delta
            return _files_of(delta) if delta else (-1, [])

    def replace(
        self, table: str, files: list[DataFile], schema: Any, periods: Collection[str] | None
    ) -> tuple[int, list[DataFile]]:
        """Make `files`, which lie in place, the whole table or its parts `periods`, in one commit.

        The parts are months, or months of one source. Returns the new version and all its files. `schema` is the Arrow
        schema of the files, None to keep the table's. A new table is made; one of other parts is begun anew, its
        earlier versions stay. Raises CheckError when another writer committed since the table was last looked at,
        unless it was other parts.
        """
        from deltalake.exceptions import DeltaError

        with self._errors(table):
            delta = self._seen.pop(table) if table in self._seen else self._open(table)
            if delta and self._opened_with[table] != self._store.delta_options():
                delta = self._open(table, delta.version())
            while True:
                try:
                    return self._replace(table, delta, files, schema, periods)
                except DeltaError as error:
                    newest = self._open(table) if periods and _is_conflict(error) else None
                    # The table library compares whole tables: what others committed of other parts is no conflict.
                    is_same = newest and _names_of(newest, periods) == (_names_of(delta, periods) if delta else set())
                    if not is_same or (delta and newest and newest.version() == delta.version()):
                        raise
                    delta = newest

    def _replace(
        self, table: str, delta: DeltaTable | None, files: list[DataFile], schema: Any, periods: Collection[str] | None
    ) -> tuple[int, list[DataFile]]:
        """`replace` after the version that was opened, None where there is no table."""
        from deltalake import Schema, TableFeatures
        from deltalake.transaction import create_table_with_add_actions

        fields = delta.schema() if delta and not schema else Schema.from_arrow(schema)
        sources = {source_of(part) for part in periods or ()}
        partitions = [] if periods is None else [PERIOD] if sources == {None} else [PERIOD, SOURCE]
        adds = [_add(file) for file in files]
        if delta is None or delta.metadata().partition_columns != partitions:
            make = partial(
                create_table_with_add_actions,
                self._uri(table),
                fields,
                adds,
                mode="overwrite" if delta else "error",
                partition_by=partitions,
                configuration=_FOREVER,
                storage_options=self._store.delta_options(),
            )
            self._commit(table, make, delta.version() if delta else -1, files)
            # The log of a new table has nothing that is not known.
            return self.files(table) if delta else (0, files)
        if "timestamp_ntz" in fields.to_json() and "timestampNtz" not in (delta.protocol().reader_features or []):
            # The table was made without any time of day.
            delta.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)
            delta.update_incremental()
        write = partial(
            delta.create_write_transaction,
            adds,
            mode="overwrite",
            schema=fields,
            partition_by=partitions,
            partition_filters=[
                (PERIOD, "in", sorted(map(month_of, periods or ()))),
                *((SOURCE, "=", each) for each in sources if each),
            ]
            if partitions
            else None,
        )
        self._commit(table, write, delta.version(), files)
        _repeated(delta.update_incremental)
        self._seen[table] = delta
        return _files_of(delta)

    def checkpoint(self, table: str) -> int:
        """Sum up the log of a table in a checkpoint; the version from which on the log is needed."""
        with self._errors(table):
            delta = self._open(table)
            if delta is None:
                return 0
            _repeated(delta.create_checkpoint)
            return delta.version()

    def _commit(self, table: str, commit: Callable[[], None], before: int, files: list[DataFile]) -> None:
        """Commit after the version `before`; again where no answer came and no commit either.

        The table library does not repeat the request that makes a commit, for it may have been carried out.
        """
        from deltalake.exceptions import DeltaError

        for pause in _PAUSES:
            try:
                return commit()
            except (DeltaError, OSError) as error:
                if pause is None or not _UNREACHABLE.search(str(error)):
                    raise
                time.sleep(pause)
                there = self._open(table)
                if there and there.version() > before:
                    if {file.name for file in files} <= {file.name for file in _files_of(there)[1]}:
                        return
                    raise

    def _open(self, table: str, version: int | None = None) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        options = self._opened_with[table] = self._store.delta_options()

        def opened() -> DeltaTable | None:
            try:
                return DeltaTable(self._uri(table), version=version, storage_options=options)
            except TableNotFoundError:
                # A table that was never made is not waited for.
                if not options or not self._store.list(f"tables/{table}/_delta_log/"):
                    return None
                raise

        try:
            return _repeated(opened)
        except TableNotFoundError:
            return None

    def _uri(self, table: str) -> str:
        return self._store.uri(f"tables/{table}")

    @contextmanager
    def _errors(self, table: str, version: int | None = None) -> Iterator[None]:
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            yield
        except CommitFailedError as error:
            raise CheckError(f"{table} was changed by another build; run this one again.") from error
        except (DeltaError, OSError) as error:
            where = self._uri(table) + (f" version {version}" if version is not None else "")
            if _UNREACHABLE.search(str(error)):
                # The library colors a chain of causes; the last one is the fault, or the answer to it.
                causes = [line.rpartition("↳")[2].removeprefix("\x1b[0m").strip() for line in str(error).splitlines()]
                reason = next((cause for cause in reversed(causes) if not cause.startswith("<")), causes[-1])
                raise UnreachableError(f"{where} did not answer ({reason}); run it again, it continues.") from error
            if answered := _ANSWER.search(str(error)):
                from botocore.exceptions import ClientError

                found = error_of(ClientError({"Error": {"Code": answered[1]}}, ""), where, _PERMISSION)
                # Of another answer, the library states more.
                if not isinstance(found, UnreachableError):
                    raise found from error
            # What follows are structures of the library.
            reason = re.split(r":? \w+ \{", str(error).splitlines()[0])[0].rstrip(".")
            if _INCOMPLETE.search(reason):
                fix = "run it again, or restore its _delta_log"
                raise UnreachableError(f"{where} has a log that is not listed whole ({reason}); {fix}.") from error
            raise SourceError(f"{where} cannot be used ({reason}); restore it or its access rights.") from error


def _repeated(call: Callable[[], T]) -> T:
    """What a call that only reads, or that may be carried out twice, gives when S3 answers again."""
    from deltalake.exceptions import DeltaError

    for pause in _PAUSES:
        try:
            return call()
        except (DeltaError, OSError) as error:
            if pause is None or not (_UNREACHABLE.search(str(error)) or _INCOMPLETE.search(str(error))):
                raise
            time.sleep(pause)
    raise AssertionError("unreachable")


def _files_of(delta: DeltaTable) -> tuple[int, list[DataFile]]:
    """The version of an opened table, and its files."""
    actions = delta.get_add_actions(flatten=True)
    columns: list[Any] = [actions.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
    for name in (f"partition.{PERIOD}", f"partition.{SOURCE}"):
        has_it = name in actions.column_names
        columns.append(actions.column(name).to_pylist() if has_it else [None] * len(columns[0]))
    return delta.version(), [
        DataFile(name, month and part_of(month, source), size, row_count)
        for name, size, row_count, month, source in zip(*columns, strict=True)
    ]


def _is_conflict(error: Exception) -> bool:
    """Whether a commit was refused because another writer was first, or made the table."""
    from deltalake.exceptions import CommitFailedError

    return isinstance(error, CommitFailedError) or "already exists" in str(error)


def _names_of(delta: DeltaTable, periods: Collection[str] | None) -> set[str]:
    """The files of some parts of an opened table."""
    return {file.name for file in _files_of(delta)[1] if file.period in (periods or ())}


def _add(file: DataFile) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.name,
        size=file.size,
        partition_values={
            name: value
            for name, value in ((PERIOD, month_of(file.period or "")), (SOURCE, source_of(file.period or "")))
            if value
        },
        modification_time=int(datetime.now(UTC).timestamp() * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": file.row_count}),
    )
