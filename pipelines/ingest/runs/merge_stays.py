"""Stays on a machine less what another record of them holds, so that no second of a node is claimed twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

_Rows = list[dict[str, Any]]


def less(stays: Sequence[dict[str, Any]], held: Sequence[dict[str, Any]], attempts: Sequence[dict[str, Any]]) -> _Rows:
    """What is left of `stays` where `held` (with its `attempts`, which close what is open) has the same node."""
    ends = {row["attempt_no"]: row["ended_at"] or row["last_seen_at"] for row in attempts}
    left: _Rows = []
    for stay in stays:
        pieces = [(stay["joined_at"], stay["left_at"])]
        for row in held:
            if row["resource_id"] == stay["resource_id"]:
                until = row["left_at"] or ends.get(row["attempt_no"]) or row["joined_at"]
                pieces = [rest for piece in pieces for rest in _without(piece, row["joined_at"], until)]
        left += [stay | {"joined_at": begun, "left_at": ended} for begun, ended in pieces]
    return left


def _without(
    piece: tuple[datetime, datetime | None], begun: datetime, ended: datetime
) -> list[tuple[datetime, datetime | None]]:
    first, last = piece
    if ended <= first or (last is not None and begun >= last):
        return [piece]
    rest: list[tuple[datetime, datetime | None]] = [(first, begun)] if first < begun else []
    # A stay without an end goes on after what is held; where that is, its own attempt says.
    return [*rest, (ended, last)] if last is None or ended < last else rest
