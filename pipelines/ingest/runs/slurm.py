"""Slurm accounting: files of `sacct -P -D` output, one run a job, one attempt a requeue (facts training-runs 1.7).

A dynamic node keeps its name while the instance behind it changes, so a name alone matches no line of the bill. A node
map next to the output gives the instance at a time: `nodes.csv`, or `nodes.log` as a prolog appends to it.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby, product
from math import prod
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pipelines.base.errors import SourceError, UsageError, shown
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.metrics import attempts_of
from pipelines.ingest.runs.records import (
    DECLARED,
    Row,
    RunRecords,
    RunRows,
    Tables,
    keep_latest,
    moment_of,
    open_run_store,
    utc,
)

_WANTED = ("JobIDRaw", "State", "Start", "End", "NodeList")
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
    stays: dict[str, list[Row]] = {}
    jobs: dict[str, dict[tuple[datetime, str], Row]] = {}
    for item in store.list():
        where = store.uri(item.key)
        if read_map := NODE_MAPS.get(item.key.rpartition("/")[2]):
            for stay in read_map(store.read(item.key), where, zone):
                stays.setdefault(stay["node"], []).append(stay)
        elif item.key.endswith((".txt", ".psv", ".sacct")):
            for record in _records(store.read(item.key), where, zone):
                # The same record may be in several days' files.
                found = jobs.setdefault(record["JobIDRaw"], {})
                keep_latest(found, (record["Start"], record["NodeList"]), record, _progress)
    rows = RunRows(source)
    for job, found in sorted(jobs.items()):
        attempts = [found[key] for key in sorted(found)]
        comment = _COMMENT.search(attempts[-1].get("Comment") or "")
        run_id = comment[1] if comment else f"{source.name}-{job}"
        rows.declared |= {run_id} if comment else set()
        where = f"[[runs]] {source.name}: job {job}"
        rows.add(run_id, where, _job, run_id, attempts, stays, rows.warnings)
    return rows.records(f"{store.location} holds no sacct output (.txt, .psv or .sacct)")


def _progress(record: Row) -> tuple[bool, datetime, int]:
    """A record with an end comes after one without; of the latter the longest lasting one is the last."""
    elapsed = record.get("ElapsedRaw") or ""
    return record["End"] is not None, record["End"] or datetime.min, int(elapsed) if elapsed.isdecimal() else 0


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


def _records(content: bytes, where: str, zone: ZoneInfo) -> Iterable[Row]:
    lines = content.decode("utf-8-sig", "replace").splitlines()
    header = lines[0].split("|") if lines else []
    missing = [name for name in _WANTED if name not in header]
    if missing:
        fix = f"write it with `sacct -P -D -X --format={','.join(_WANTED)},...`"
        raise SourceError(f"{where} has no column {missing[0]}; {fix}.")
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("|")
        if len(cells) < len(header):
            raise SourceError(f"{where}, line {number} has {len(cells)} of {len(header)} fields; write the file again.")
        record: Row = dict(zip(header, cells, strict=False))
        if "." in record["JobIDRaw"]:
            continue
        for name in ("Start", "End", "Submit", "Eligible"):
            record[name] = moment(record.get(name, ""), zone, f"{where}, line {number}: {name}")
        if record["Start"] is not None:
            yield record


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
        "last_seen_at": max(record["End"] or record["Start"] for record in attempts),
    }
    return {
        "run": [run],
        "attempt": attempts_of(
            (record["Start"], record["End"], reason) for record, (reason, _) in zip(attempts, states, strict=True)
        ),
        "resource": [
            {"attempt_no": number} | node
            for number, record in enumerate(attempts, start=1)
            for node in _nodes(run_id, record, stays, warnings)
        ],
    }


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
    used = int(gpus[1]) // max(int(nodes[1] if nodes else len(names)), 1) if gpus else None
    for rank, name in enumerate(names):
        stay = {"node_rank": rank, "joined_at": record["Start"], "left_at": record["End"], "accelerators_used": used}
        held = [
            s
            for s in stays.get(name, ())
            if (s["started_at"] is None or record["End"] is None or s["started_at"] < record["End"])
            and (s["ended_at"] is None or s["ended_at"] > record["Start"])
        ]
        if not held:
            warnings.append(
                f"Run {run_id}: no nodes.csv maps node {name} to an instance; its cost is not found. Add the node."
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


def moment(text: str, zone: ZoneInfo, what: str) -> datetime | None:
    """Local time of the cluster, or seconds since 1970 where sacct is set to write them, as naive UTC."""
    if text in UNKNOWN:
        return None
    try:
        if text.isdigit():
            return moment_of(int(text))
        at = datetime.fromisoformat(text)
        return utc(at if at.tzinfo else at.replace(tzinfo=zone))
    except (ValueError, OverflowError):
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
        changes = [next(same) for _, same in groupby(sorted(seen), key=lambda line: line[1])]
        ends = [at for at, _, _ in changes[1:]] + [None]
        for (at, instance_id, instance_type), end in zip(changes, ends, strict=True):
            stay = {"node": node, "started_at": at, "ended_at": end}
            yield stay | {"instance_id": instance_id, "instance_type": instance_type}


NODE_MAPS: dict[str, Callable[[bytes, str, ZoneInfo], Iterable[Row]]] = {"nodes.csv": _table, "nodes.log": _log}
