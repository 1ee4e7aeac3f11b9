"""The instance of a Slurm node name at a time: `nodes.csv`, or `nodes.log` as a prolog appends to it (facts 1.7).

Dynamic nodes keep their name while the instance behind it changes, so a name alone matches no line of the bill.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from pipelines.base.errors import SourceError
from pipelines.ingest.runs.records import Row

# How sacct writes an unknown value.
UNKNOWN = ("", "Unknown", "None", "N/A", "None assigned")
_COLUMNS = ("node", "started_at", "ended_at", "instance_id", "instance_type")


def moment(text: str, zone: ZoneInfo, what: str) -> datetime | None:
    """Local time of the cluster, or seconds since 1970 where sacct is set to write them, as naive UTC."""
    if text in UNKNOWN:
        return None
    try:
        if text.isdigit():
            return datetime.fromtimestamp(int(text), UTC).replace(tzinfo=None)
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise SourceError(f"{what} {text!r} is not a time; leave SLURM_TIME_FORMAT unset or write %s.") from None


def _table(content: bytes, where: str, zone: ZoneInfo) -> Iterable[Row]:
    """A stay a row, its end empty while it lasts."""
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace")))
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise SourceError(f"{where} has no column {missing[0]}; write {', '.join(_COLUMNS)}.")
    for number, row in enumerate(reader, start=2):
        for name in ("started_at", "ended_at"):
            row[name] = moment(row[name] or "", zone, f"{where}, line {number}: {name}")
        yield row


def _log(content: bytes, where: str, zone: ZoneInfo) -> Iterable[Row]:
    """A line per job start on a node: time, node, instance, type. A name keeps its instance until another line."""
    starts: dict[str, list[tuple[datetime, str, str]]] = {}
    lines = content.decode("utf-8-sig", "replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not (parts := line.split()):
            continue
        is_whole = len(parts) in (3, 4) and parts[2].startswith(("i-", "mi-"))
        if not is_whole and number == len(lines):
            # The node went down while its prolog wrote.
            continue
        at = moment(parts[0], zone, f"{where}, line {number}:") if is_whole else None
        if at is None:
            raise SourceError(f"{where}, line {number} is not time, node, instance id and type; fix or remove it.")
        starts.setdefault(parts[1], []).append((at, parts[2], parts[3] if len(parts) == 4 else ""))
    for node, seen in sorted(starts.items()):
        stays: list[Row] = []
        for at, instance_id, instance_type in sorted(seen):
            if stays and stays[-1]["instance_id"] == instance_id:
                continue
            if stays:
                stays[-1]["ended_at"] = at
            stays.append(
                {"node": node, "started_at": at, "ended_at": None}
                | {"instance_id": instance_id, "instance_type": instance_type}
            )
        yield from stays


NODE_MAPS: dict[str, Callable[[bytes, str, ZoneInfo], Iterable[Row]]] = {
    "nodes.csv": _table,
    "nodes.log": _log,
}
