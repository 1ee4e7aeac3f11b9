"""Publication records: numbered, never changed, each making the tables of one build visible together."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pipelines.base.errors import CheckError, SourceError, UsageError
from pipelines.base.parse import parse_json
from pipelines.base.version import __version__
from pipelines.warehouse.storage import Store

# Other files in the folder are ignored.
_KEY = re.compile(r"publications/\d{6,}\.json")
_REMOVED = "pruned.json"


@dataclass(frozen=True)
class Publication:
    """One build made visible: what it was made from, each table's version and files, each check's result.

    `raw` are the files of the raw tables that we write ourselves, such as training runs as recorded then; `before`
    those of the publication before that tables of this one rest on.
    """

    number: int
    published_at: datetime
    code_revision: str
    inputs: dict[str, Any]
    tables: dict[str, dict[str, Any]]
    checks: list[dict[str, Any]]
    raw: dict[str, dict[str, Any]] = field(default_factory=dict)
    before: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The version of trainledger that made it."""
        return _version(self.code_revision)

    @property
    def billing_months(self) -> list[str]:
        """The delivered months (YYYY-MM), in order."""
        return sorted({str(delivery["billing_period"]) for delivery in self.inputs["deliveries"]})


class Publications:
    """The publications of one warehouse, oldest first. Their number is what switches readers over."""

    def __init__(self, store: Store):
        self._store = store
        # A record never changes, and one of many months takes a while to parse.
        self._newest: tuple[str, Publication] | None = None

    def add(self, record: dict[str, Any]) -> Publication:
        """Write the next record; CheckError when another build was first."""
        before = self.newest()
        now = datetime.now(UTC)
        if before:
            # A clock set back must not put them out of order.
            now = max(now, before.published_at + timedelta(microseconds=1))
        publication = Publication(number=before.number + 1 if before else 1, published_at=now, **record)
        text = json.dumps(publication.__dict__, default=str, sort_keys=True)
        if not self._store.write_new(f"publications/{publication.number:06d}.json", text.encode()):
            raise CheckError("Another build published while this one ran; run this one again.")
        return publication

    def newest(self) -> Publication | None:
        """The last one; None before the first."""
        keys = self._keys()
        if not keys:
            return None
        if self._newest is None or self._newest[0] != keys[-1]:
            self._newest = keys[-1], self._read(keys[-1])
        return self._newest[1]

    def predecessor(self) -> Publication | None:
        """The last one, which the next one follows; UsageError where a newer version made it."""
        last = self.newest()
        if last and _is_newer(last.version):
            raise UsageError(
                f"{self._store.location}: publication {last.number} was made by trainledger {last.version} and this is "
                f"{__version__}, which cannot build on it; install {last.version} or newer, or choose another "
                "location under [warehouse]."
            )
        return last

    def all(self) -> list[Publication]:
        """Every one."""
        return [self._read(key) for key in self._keys()]

    def as_of(self, at: datetime) -> Publication | None:
        """The last one published by `at`, a time with its zone; None when there was none yet.

        UsageError where that one was removed.
        """
        keys = self._keys()
        known = bisect_right(keys, at, key=lambda key: self._read(key).published_at)
        found = self._read(keys[known - 1]) if known else None
        # By time: a rollback gives numbers again.
        removed = ((moment, number) for number, moment in self._removed().items() if moment <= at)
        last, number = max(removed, default=(None, 0))
        if last and (found is None or last > found.published_at):
            near = [self._read(key) for key in keys[max(known - 1, 0) : known + 1]]
            raise UsageError(
                f"Publication {number}, the newest at {at:%Y-%m-%d %H:%M} UTC, was pruned; the nearest kept are "
                f"{' and '.join(f'{one.number} of {one.published_at:%Y-%m-%d %H:%M} UTC' for one in near)}."
            )
        return found

    def remove(self, publications: Sequence[Publication]) -> None:
        """Remove records; which they were stays known, so that `as_of` never takes another one for them."""
        if publications:
            gone = self._removed() | {one.number: one.published_at for one in publications}
            text = json.dumps({number: moment.isoformat() for number, moment in gone.items()})
            self._store.write(_REMOVED, text.encode())
            for one in publications:
                self._store.delete(f"publications/{one.number:06d}.json")

    def _removed(self) -> dict[int, datetime]:
        """The number and time of each that was pruned."""
        if not self._store.exists(_REMOVED):
            return {}
        try:
            listed = parse_json(self._store.read(_REMOVED))
            return {int(number): datetime.fromisoformat(moment) for number, moment in listed.items()}
        except (ValueError, TypeError, AttributeError) as error:
            where = self._store.uri(_REMOVED)
            raise SourceError(f"{where} is not the list of pruned publications ({error}); restore it.") from None

    def _keys(self) -> list[str]:
        return [item.key for item in self._store.list("publications/") if _KEY.fullmatch(item.key)]

    def _read(self, key: str) -> Publication:
        record: Any = None
        try:
            record = parse_json(self._store.read(key))
            record["published_at"] = datetime.fromisoformat(record["published_at"])
            return _complete(Publication(**record))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            made_by = _version(str(record.get("code_revision", ""))) if isinstance(record, dict) else ""
            if _is_newer(made_by):
                raise UsageError(
                    f"{self._store.uri(key)} was made by trainledger {made_by} and this is {__version__}, which cannot "
                    f"read it; install {made_by} or newer."
                ) from None
            raise SourceError(f"{self._store.uri(key)} is not a publication record ({error}); restore it.") from None


def _complete(found: Publication) -> Publication:
    """The publication; an error of Python where a part that every record has is missing or of another type."""
    parts: tuple[tuple[Iterable[dict[str, Any]], tuple[str, ...]], ...] = (
        ([found.inputs], ("deliveries", "tags")),
        (found.inputs["deliveries"], ("source", "billing_period", "fingerprint")),
        ([*found.tables.values(), *found.raw.values()], ("files",)),
        (found.checks, ("table", "check", "passed", "sample")),
    )
    for rows, names in parts:
        for row in rows:
            _ = [row[name] for name in names]
    _ = found.version
    return found


def _version(code_revision: str) -> str:
    return code_revision.partition("+")[0]


def _is_newer(version: str) -> bool:
    """Whether a version is newer than this one."""
    theirs, ours = ([int(number) for number in re.findall(r"\d+", one)] for one in (version, __version__))
    return theirs > ours
