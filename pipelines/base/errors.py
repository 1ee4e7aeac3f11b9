"""Errors, by the exit code of the command. Each message is one sentence: where, what is wrong, how to fix it."""

_SHOWN = 100


class TrainledgerError(Exception):
    """A failure the user can act on; `exit_code` is what the command returns."""

    exit_code = 1


class CheckError(TrainledgerError):
    """A data check or verification failed."""


class UsageError(TrainledgerError):
    """Wrong usage or configuration."""

    exit_code = 2


class SourceError(TrainledgerError):
    """A source could not be read."""

    exit_code = 3


class UnreachableError(SourceError):
    """A source that did not answer; a later try may work."""


class EngineError(TrainledgerError):
    """The engine refused a SELECT or could not finish it."""


def shown(name: str) -> str:
    """A name from outside, quoted in a message; only its beginning where it is long."""
    return repr(cut(name, _SHOWN))


def cut(text: str, most: int) -> str:
    """A text from outside of at most so many letters, which ends in … where it is longer."""
    return text if len(text) <= most else f"{text[:most]}…"
