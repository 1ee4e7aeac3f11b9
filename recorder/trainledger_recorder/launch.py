"""The rank and the attempt of this process, from the environment of its launcher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "AWS_BATCH_JOB_NODE_INDEX")
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
# What counts from 0, and what counts from 1.
_RESTARTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
_ATTEMPTS = ("AWS_BATCH_JOB_ATTEMPT",)


def rank(environment: Mapping[str, str]) -> int:
    """The rank among all processes; 0 where unknown."""
    return _first(environment, _RANKS) or 0


def local_rank(environment: Mapping[str, str]) -> int:
    """The rank among this node's processes; 0 where unknown."""
    return _first(environment, _LOCAL_RANKS) or 0


def attempt(environment: Mapping[str, str], folder: Path, own_rank: int) -> int:
    """The number of this attempt, from 1: as launched, but never one this rank has already written a file for here."""
    number = _first(environment, _ATTEMPTS)
    if number is None:
        restarts = [_first(environment, (name,)) for name in _RESTARTS]
        number = 1 + max((count for count in restarts if count is not None), default=0)
    found = (path.parent.name.partition("-")[2] for path in folder.glob(f"attempt-*/rank-{own_rank}.jsonl"))
    return max([number, *(int(earlier) + 1 for earlier in found if earlier.isdecimal())])


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdecimal()), None)
