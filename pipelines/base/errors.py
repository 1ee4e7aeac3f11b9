"""What can go wrong, by the exit code a shell sees. Each message is one sentence: what, where, how to fix it."""

from __future__ import annotations

_SHOWN = 100


class TrainledgerError(Exception):
    """A failure the user can act on; `exit_code` is what the command returns."""

    exit_code = 1


class CheckError(TrainledgerError):
    """A data check or verification failed."""

    exit_code = 1


class UsageError(TrainledgerError):
    """Wrong usage or configuration."""

    exit_code = 2


class SourceError(TrainledgerError):
    """A source could not be read as what it claims to be."""

    exit_code = 3


class UnreachableError(SourceError):
    """A source that did not answer; trying again later may help."""


class EngineError(TrainledgerError):
    """The engine refused a SELECT or could not finish it."""

    exit_code = 1


def shown(name: str) -> str:
    """A name that someone gave, as a sentence quotes it: its beginning, where it is long."""
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…")
