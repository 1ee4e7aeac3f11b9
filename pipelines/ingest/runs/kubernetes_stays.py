"""What the pods of a Job share: nodes, and the storage their claims are bound to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from pipelines.ingest.runs.records import Row

# How a volume names what AWS bills: `vol-0abc`, `fs-0abc::fsap-0def`, `aws://us-west-2a/vol-0abc`.
_BILLED = re.compile(r"(?:^|/)((?:vol|fs)-[0-9a-z]+)")


def side_by_side(stays: Iterable[Row]) -> list[Row]:
    """Pods of one attempt on one node as stays that do not overlap, with the accelerators of all of them."""
    held: dict[tuple[int, str], list[Row]] = {}
    found: list[Row] = []
    for stay in stays:
        if stay["left_at"] is not None and stay["left_at"] <= stay["joined_at"]:
            found.append(stay)
        else:
            held.setdefault((stay["attempt_no"], stay["resource_id"]), []).append(stay)
    for group in held.values():
        bounds = sorted({at for stay in group for at in (stay["joined_at"], stay["left_at"] or datetime.max)})
        for begin, end in pairwise(bounds):
            here = [s for s in group if s["joined_at"] <= begin and (s["left_at"] or datetime.max) >= end]
            if not here:
                continue
            requested = [stay["accelerators_used"] for stay in here]
            # A pod that requests none has the whole node.
            total = None if None in requested else sum(requested)
            until = None if end == datetime.max else end
            stay = here[0] | {"joined_at": begin, "left_at": until, "accelerators_used": total}
            last = found[-1] if found else {}
            if last.get("left_at") == begin and last | {"left_at": until} == stay | {"joined_at": last["joined_at"]}:
                last["left_at"] = until
            else:
                found.append(stay)
    return found


def storage(
    run_id: str,
    pods: Iterable[tuple[Mapping[str, Any], datetime, datetime | None]],
    attempts: Iterable[Mapping[str, Any]],
    claims: Mapping[tuple[str, str], Mapping[str, Any]],
    volumes: Mapping[str, Mapping[str, Any]],
    warnings: list[str],
) -> list[Row]:
    """What the pods' claims are bound to, for as long as any pod of the attempt had it."""
    held: dict[tuple[int, str], Row] = {}
    for pod, begin, end in pods:
        number = max(attempt["attempt_no"] for attempt in attempts if attempt["started_at"] <= begin)
        for mount in (pod.get("spec") or {}).get("volumes") or ():
            if not (name := (mount.get("persistentVolumeClaim") or {}).get("claimName")):
                continue
            claim = claims.get((pod["metadata"].get("namespace", ""), name)) or {}
            volume = volumes.get((claim.get("spec") or {}).get("volumeName") or "")
            if volume is None:
                warnings.append(f"Run {run_id}: claim {name} and its volume are in no snapshot; its cost is not found.")
            elif billed := _billed(volume):
                stay = held.setdefault(
                    (number, billed),
                    {"attempt_no": number, "resource_id": billed, "evidence": "api"}
                    | {"joined_at": begin, "left_at": end},
                )
                stay["joined_at"] = min(stay["joined_at"], begin)
                stay["left_at"] = max(stay["left_at"], end) if stay["left_at"] and end else None
    return list(held.values())


def _billed(volume: Mapping[str, Any]) -> str | None:
    spec = volume.get("spec") or {}
    handle = (spec.get("csi") or {}).get("volumeHandle") or (spec.get("awsElasticBlockStore") or {}).get("volumeID")
    named = _BILLED.search(str(handle or ""))
    return named[1] if named else None
