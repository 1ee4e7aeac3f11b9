"""The rank and the attempt of this process, from the environment of its launcher."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "AWS_BATCH_JOB_NODE_INDEX")
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
# What counts from 0, and what counts from 1.
_RESTARTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
_ATTEMPTS = ("AWS_BATCH_JOB_ATTEMPT",)
# The ranks of an attempt start one after the other with less time than this between them.
_LAUNCH_SECONDS = 600


def rank(environment: Mapping[str, str]) -> int:
    """The rank among all processes; 0 where unknown."""
    return _first(environment, _RANKS) or 0


def file_of(environment: Mapping[str, str]) -> str:
    """The name of the file of this rank, a new one for each process whose rank is unknown."""
    known = _first(environment, _RANKS)
    return f"rank-0-{token_hex(4)}.jsonl" if known is None else f"rank-{known}.jsonl"


def files_of(own_rank: int) -> str:
    """How the names of all files of a rank begin, and those of no other."""
    return f"rank-{own_rank}." if own_rank else "rank-0"


def local_rank(environment: Mapping[str, str]) -> int:
    """The rank among this node's processes; 0 where unknown."""
    return _first(environment, _LOCAL_RANKS) or 0


def attempt(environment: Mapping[str, str], folder: Path, own_rank: int) -> int:
    """The number of this attempt, from 1: as launched, but none that this rank has recorded or that began long ago.

    A rank that joins an elastic group when it restarts has recorded none, and is of the attempt of the others.
    """
    number = _first(environment, _ATTEMPTS)
    if number is None:
        restarts = [_first(environment, (name,)) for name in _RESTARTS]
        number = 1 + max((count for count in restarts if count is not None), default=0)
    for home in folder.glob("attempt-*"):
        earlier = home.name.partition("-")[2]
        if earlier.isdecimal():
            # Each rank that starts changes the time of the folder.
            is_own = any(home.glob(f"{files_of(own_rank)}*"))
            is_over = is_own or time.time() - home.stat().st_mtime > _LAUNCH_SECONDS
            number = max(number, int(earlier) + is_over)
    return number


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdecimal()), None)
