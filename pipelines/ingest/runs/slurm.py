"""Slurm accounting: files of `sacct -P -D` output, one run a job, one attempt a requeue (facts training-runs 1.7).

A dynamic node keeps its name while the instance behind it changes, so a name alone matches no line of the bill. A node
map next to the output gives the instance at a time: `nodes.csv`, or `nodes.log` as a prolog appends to it.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, product
from math import prod
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pipelines.base.errors import UsageError, shown
from pipelines.base.parse import ParseError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import attempts_of
from pipelines.ingest.runs.records import DECLARED, Row, RunRecords, RunRows, Tables, keep_latest, open_run_store
from pipelines.ingest.schema import moment_of

# The times of a record in the order of a job's life.
_TIMES = ("Submit", "Eligible", "Start", "End")
_REPEATED = "is in an hour that the clocks repeat, and may be the first or the second; write it"
_UNSURE = "Until then no run has that hour of the node."
_REWRITE = "fix it, or write it again with SLURM_TIME_FORMAT unset or %s"
_WANTED = ("JobIDRaw", "State", "Start", "End", "NodeList")
# Clusters number their jobs alike, and one that is built again begins anew.
_JOB = ("JobIDRaw", "Cluster", "User", "JobName")
# State of a record -> how the attempt ended, and the run if it was the last.
_STATES = {
    "COMPLETED": ("completed", "completed"),
    "FAILED": ("sw_error", "failed"),
    "OUT_OF_MEMORY": ("oom", "failed"),
    "TIMEOUT": ("timeout", "failed"),
    "DEADLINE": ("timeout", "failed"),
    "NODE_FAIL": ("hw_failure", "failed"),
    "BOOT_FAIL": ("hw_failure", "failed"),
    "PREEMPTED": ("preempted", "killed"),
    "REQUEUED": ("preempted", None),
    "CANCELLED": ("user_stop", "killed"),
    "RUNNING": (None, None),
    "SUSPENDED": (None, None),
}
_GPUS = re.compile(r"(?:^|,)gres/(?:gpu|neuron)(?::[^=]+)?=(\d+)")
# `sbatch --comment trainledger.run_id=llama8b-42` declares the run of the job.
_COMMENT = re.compile(rf"{re.escape(DECLARED)}=([^\s,;|]+)")
# Largest cluster and longest name.
_MOST_NODES, _LONGEST_NAME = 100_000, 255
_COUNT = re.compile(r"[1-9][0-9]{0,4}")
_HOST = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_NODES = re.compile(r"(?:^|,)node=(\d+)")
# How sacct writes an unknown value.
UNKNOWN = ("", "Unknown", "None", "N/A", "None assigned")
_COLUMNS = ("node", "started_at", "ended_at", "instance_id", "instance_type")


def read(source: RunSource) -> RunRecords:
    """The jobs of every sacct file below the source's location."""
    try:
        zone = ZoneInfo(source.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        fix = "write one like Europe/Oslo or UTC"
        raise UsageError(f"[[runs]] {source.name}: timezone {source.timezone!r} is unknown; {fix}.") from None
    store = open_run_store(source)
    rows = RunRows(source)
    stays: dict[str, list[Row]] = {}
    jobs: dict[tuple[str, ...], dict[tuple[datetime, str], Row]] = {}
    for item in store.list():
        where = store.uri(item.key)
        with rows.skipping(where):
            if read_map := NODE_MAPS.get(item.key.rpartition("/")[2]):
                for stay in read_map(store.read(item.key), where, zone, rows):
                    stays.setdefault(stay["node"], []).append(stay)
            elif item.key.endswith((".txt", ".psv", ".sacct")):
                for record in _records(store.read(item.key), where, zone, rows):
                    # The same record may be in several days' files.
                    found = jobs.setdefault(tuple(record.get(name) or "" for name in _JOB), {})
                    keep_latest(found, (record["Start"], record["NodeList"]), record, _progress)
    for (job, *_), found in sorted(jobs.items()):
        attempts = _clear(found[key] for key in sorted(found))
        comment = _COMMENT.search(attempts[-1].get("Comment") or "")
        run_id = comment[1] if comment else f"{source.name}-{job}"
        rows.declared |= {run_id} if comment else set()
        if unclear := next((record for record in attempts if record["unclear"]), None):
            ends = [record["End"] for record in attempts]
            seen_at = None if None in ends else max(ends)
            rows.set_aside(run_id, unclear["unclear"], started_at=attempts[0]["Start"], last_seen_at=seen_at)
            continue
        where = f"[[runs]] {source.name}: job {job}"
        rows.add(run_id, where, _job, run_id, attempts, stays, rows.warnings)
    return rows.records(f"{store.location} holds no sacct output (.txt, .psv or .sacct)")


def _progress(record: Row) -> tuple[bool, datetime, int]:
    """A record with an end comes after one without; of the latter the longest lasting one is the last."""
    return record["End"] is not None, record["End"] or datetime.min, record["seconds"] or 0


def hostlist(text: str, most: int = _MOST_NODES) -> list[str]:
    """Node names of a Slurm host list: `q1-[1-3,07],head` -> q1-1 q1-2 q1-3 q1-07 head.

    ValueError, in words that follow the list, if it is none or names more than `most` nodes.
    """
    # Name, brackets, name, brackets, name.
    hosts = [_BRACKETS.split(host) for host in _HOST.findall(text)]
    if not hosts or _HOST.sub("", text).strip(",") or max(map(_length, hosts)) > _LONGEST_NAME:
        raise ValueError("is not a host list")
    ranges = [[_ranges(inside) for inside in host[1::2]] for host in hosts]
    # Three brackets of a few digits name a million million nodes, so they are counted first.
    count = sum(prod(sum(n.stop - n.start for n, _ in inside) for inside in host) for host in ranges)
    if count > most:
        raise ValueError(f"names {count:,} nodes where the job has at most {most:,}")
    names = []
    for host, insides in zip(hosts, ranges, strict=True):
        spelled = [[f"{n:0{width}d}" for numbers, width in inside for n in numbers] for inside in insides]
        names += ["".join(map("".join, zip(host[::2], [*chosen, ""], strict=True))) for chosen in product(*spelled)]
    return names


def _length(host: Sequence[str]) -> int:
    """Letters of the longest name that a host may expand to, or a few more."""
    return sum(map(len, host[::2])) + sum(max(map(len, inside.split(","))) for inside in host[1::2])


def _ranges(inside: str) -> list[tuple[range, int]]:
    """The numbers between two brackets, `08-10,12`, and how many digits each has at least."""
    found = []
    for piece in inside.split(","):
        low, _, high = piece.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()) or int(low) > int(high or low):
            raise ValueError("is not a host list")
        found.append((range(int(low), int(high or low) + 1), len(low)))
    return found


def _records(content: bytes, where: str, zone: ZoneInfo, rows: RunRows) -> Iterable[Row]:
    lines = content.decode("utf-8-sig", "replace").splitlines()
    header = lines[0].split("|") if lines else []
    with rows.skipping(where, f"write it with `sacct -P -D -X --format={','.join(_WANTED)},...`"):
        _require(_WANTED, header)
        for number, line in enumerate(lines[1:], start=2):
            place, cells = f"{where}, line {number}", line.split("|")
            with rows.skipping(place, _REWRITE):
                if len(cells) < len(header):
                    raise ParseError(f"has {len(cells)} of {len(header)} fields")
                record: Row = dict(zip(header, cells, strict=False))
                if "." in record["JobIDRaw"]:
                    continue
                meant = {name: _meanings(record.get(name, ""), zone, name) for name in _TIMES}
                if meant["Start"]:
                    yield record | _span(record, meant, place)


def _require(columns: Iterable[str], header: Sequence[str]) -> None:
    if missing := [name for name in columns if name not in header]:
        raise ParseError(f"has no column {missing[0]}")


def _span(record: Row, meant: Mapping[str, Sequence[datetime]], where: str) -> Row:
    """Start and End of a record, its `seconds` by ElapsedRaw, its text of Start, and in `unclear` why the times are not
    known; then they are the widest.

    Of the times that the texts may mean, those count that are ElapsedRaw apart and in the order of a job's life.
    """
    elapsed = record.get("ElapsedRaw") or ""
    seconds = int(elapsed) if elapsed.isdecimal() else None
    options = list(product(*(meant[name] or (None,) for name in _TIMES)))
    if len(options) > 1:
        options = [one for one in options if _seconds(*one[-2:]) == seconds] or options
        options = [one for one in options if _is_in_order(one)] or options
    starts, ends = ({one[which] for one in options} for which in (-2, -1))
    unclear = "Start" if len(starts) > 1 else "End" if len(ends) > 1 else None
    return {
        "Start": min(at for at in starts if at),
        "End": max((at for at in ends if at), default=None),
        "seconds": seconds,
        "text": record["Start"],
        "unclear": unclear and f"{where}: {unclear} {record[unclear]!r} {_REPEATED} with SLURM_TIME_FORMAT=%s.",
    }


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return (end - begin).total_seconds() if begin and end else None


def _is_in_order(times: Iterable[datetime | None]) -> bool:
    known = [at for at in times if at]
    return known == sorted(known)


def _clear(records: Iterable[Row]) -> list[Row]:
    """The records of a job, less an earlier one of unclear times where a later one is clear."""
    found = [*records]
    clear = {(record["text"], record["NodeList"]) for record in found if not record["unclear"]}
    return [one for one in found if not one["unclear"] or (one["text"], one["NodeList"]) not in clear]


def _job(run_id: str, attempts: Sequence[Row], stays: Mapping[str, Sequence[Row]], warnings: list[str]) -> Tables:
    last = attempts[-1]
    states = [_STATES.get(str(record["State"]).split(" ")[0], ("unknown", None)) for record in attempts]
    status = states[-1][1]
    run = {
        "source_system": "slurm",
        "experiment": last.get("JobName") or None,
        "owner": last.get("User") or None,
        "team": last.get("Account") or None,
        "status": status,
        "started_at": attempts[0]["Start"],
        "ended_at": last["End"] if status else None,
        "last_seen_at": max(map(_seen_at, attempts)),
    }
    tries = attempts_of(
        (record["Start"], record["End"], reason) for record, (reason, _) in zip(attempts, states, strict=True)
    )
    return {
        "run": [run],
        "attempt": [row | {"last_seen_at": _seen_at(one)} for row, one in zip(tries, attempts, strict=True)],
        "resource": [
            {"attempt_no": number} | node
            for number, record in enumerate(attempts, start=1)
            for node in _nodes(run_id, record, stays, warnings)
        ],
    }


def _seen_at(record: Row) -> datetime:
    """When a record ends, or until when it shows that its job ran."""
    return record["End"] or record["Start"] + timedelta(seconds=record["seconds"] or 0)


def _nodes(run_id: str, record: Row, stays: Mapping[str, Sequence[Row]], warnings: list[str]) -> Iterable[Row]:
    if record["NodeList"] in UNKNOWN:
        return
    counted = _COUNT.fullmatch(record.get("NNodes") or "")
    try:
        names = hostlist(record["NodeList"], int(counted[0]) if counted else _MOST_NODES)
    except ValueError as error:
        listed = shown(record["NodeList"])
        warnings.append(
            f"Run {run_id}: NodeList {listed} {error}; its nodes are unknown and its cost is not found. Export the job "
            "with sacct again."
        )
        return
    tres = record.get("AllocTRES") or ""
    gpus, nodes = _GPUS.search(tres), _NODES.search(tres)
    # sacct has their sum; the first nodes have one more where it is no multiple.
    each, more = divmod(int(gpus[1]), max(int(nodes[1] if nodes else len(names)), 1)) if gpus else (None, 0)
    for rank, name in enumerate(names):
        used = None if each is None else each + (rank < more)
        stay = {"node_rank": rank, "joined_at": record["Start"], "left_at": record["End"], "accelerators_used": used}
        held = [
            s
            for s in stays.get(name, ())
            if (s["started_at"] is None or record["End"] is None or s["started_at"] < record["End"])
            and (s["ended_at"] is None or s["ended_at"] > record["Start"])
        ]
        if not held:
            warnings.append(
                f"Run {run_id}: no nodes.csv maps node {name} to an instance; its cost is not found unless "
                "another source names it. Add the node."
            )
            yield stay | {"resource_id": name, "evidence": "nodemap"}
        for instance in held:
            starts = [at for at in (record["Start"], instance["started_at"]) if at]
            ends = [at for at in (record["End"], instance["ended_at"]) if at]
            yield stay | {
                "resource_id": instance["instance_id"],
                "instance_type": instance["instance_type"] or None,
                "joined_at": max(starts),
                "left_at": min(ends) if ends else None,
                "evidence": "nodemap",
            }


def _meanings(text: str, zone: ZoneInfo, name: str) -> tuple[datetime, ...]:
    """The times that a text may mean, as naive UTC: local time of the cluster, or seconds since 1970 where sacct is set
    to write them. None for an unknown time, two in the hour that the clocks repeat.
    """
    if text in UNKNOWN:
        return ()
    try:
        if text.isdigit():
            return (moment_of(int(text)),)
        at = datetime.fromisoformat(text)
        if at.tzinfo:
            return (at.astimezone(UTC).replace(tzinfo=None),)
        first, second = (at.replace(tzinfo=zone, fold=n).astimezone(UTC).replace(tzinfo=None) for n in (0, 1))
        # In the hour that the clocks leave out the second is before the first.
        return (first, second) if first < second else (first,)
    except (ValueError, OverflowError):
        raise ParseError(f"has {name} {text!r}, which is not a time") from None


def _table(content: bytes, where: str, zone: ZoneInfo, rows: RunRows) -> Iterable[Row]:
    """A stay a row, its end empty while it lasts; of an hour that the clocks repeat only what is sure."""
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig", "replace")))
    with rows.skipping(where, f"write {', '.join(_COLUMNS)}"):
        _require(_COLUMNS, reader.fieldnames or ())
        for number, row in enumerate(reader, start=2):
            place, times = f"{where}, line {number}", []
            with rows.skipping(place, _REWRITE):
                for name in ("started_at", "ended_at"):
                    times.append(_meanings(row[name] or "", zone, name))
                    if len(times[-1]) > 1:
                        rows.warnings.append(f"{place}: {name} {row[name]!r} {_REPEATED} with its offset. {_UNSURE}")
                yield from _sure(row, *times)


def _sure(stay: Row, starts: Sequence[datetime], ends: Sequence[datetime]) -> Iterable[Row]:
    """The part of a stay that is sure where its start or end may be one of several times."""
    started_at, ended_at = max(starts, default=None), min(ends, default=None)
    if len(starts) < 2 > len(ends) or started_at is None or ended_at is None or started_at < ended_at:
        yield stay | {"started_at": started_at, "ended_at": ended_at}


def _log(content: bytes, where: str, zone: ZoneInfo, rows: RunRows) -> Iterable[Row]:
    """A line per job start on a node: time, node, instance, type. A name keeps its instance until another line."""
    starts: dict[str, list[tuple[Sequence[datetime], str, str]]] = {}
    lines = content.decode("utf-8-sig", "replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not (parts := line.split()):
            continue
        is_whole = len(parts) in (3, 4) and parts[2].startswith(("i-", "mi-"))
        if not is_whole and number == len(lines):
            # The node went down while its prolog wrote.
            continue
        with rows.skipping(f"{where}, line {number}"):
            times = _meanings(parts[0], zone, "time") if is_whole else ()
            if not times:
                raise ParseError("is not time, node, instance id and type")
            if len(times) > 1:
                rows.warnings.append(f"{where}, line {number}: {parts[0]!r} {_REPEATED} with `date +%s`. {_UNSURE}")
            starts.setdefault(parts[1], []).append((times, parts[2], parts[3] if len(parts) == 4 else ""))
    for node, seen in sorted(starts.items()):
        changes = [next(same) for _, same in groupby(sorted(seen), key=lambda line: line[1])]
        ends = [*(times for times, _, _ in changes[1:]), ()]
        for (times, instance_id, instance_type), end in zip(changes, ends, strict=True):
            stay = {"node": node, "instance_id": instance_id, "instance_type": instance_type}
            yield from _sure(stay, times, end)


NODE_MAPS: dict[str, Callable[[bytes, str, ZoneInfo, RunRows], Iterable[Row]]] = {
    "nodes.csv": _table,
    "nodes.log": _log,
}
