"""Errors, by the exit code of the command. Each message is one sentence: where, what is wrong, how to fix it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC

_SHOWN = 100
# Verbs of one thing that do not end in an s of their own.
_OF_ONE = {"are": "is", "have": "has"}
# How libraries report a full disk, each in its own words; DuckDB stops before the disk does.
_FULL = re.compile(r"No space left on device|Disk quota exceeded|os error (28|122)\b|max_temp_directory_size")


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


class MalformedError(SourceError):
    """A file or record of a source that is malformed."""


class UnlistedError(SourceError):
    """A folder that cannot be listed."""

    def __init__(self, reason: str):
        super().__init__(f"{reason}; check `location`.")
        self.reason = reason


@contextmanager
def listing(entry: str, key: str = "location") -> Iterator[None]:
    """Name the entry of the configuration whose folder cannot be listed."""
    try:
        yield
    except UnlistedError as error:
        raise SourceError(f"{error.reason}; check `{key}` of {entry}.") from None


class EngineError(TrainledgerError):
    """The engine refused a SELECT or could not finish it."""


def shown(name: str) -> str:
    """A name from outside, quoted in a message; only its beginning where it is long."""
    return repr(cut(name, _SHOWN))


def cut(text: str, most: int) -> str:
    """A text from outside of at most so many letters, which ends in … where it is longer."""
    return text if len(text) <= most else f"{text[:most]}…"


def installing(extra: str) -> str:
    """How an extra is installed: trainledger itself is on no registry."""
    return f"run `pip install -e '.[{extra}]'` in a checkout, or `pip install 'FILE.whl[{extra}]'` with the wheel"


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind an error."""
    while error is not None:
        if getattr(error, "errno", None) in (ENOSPC, EDQUOT) or _FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def shown_bytes(count: float) -> str:
    """`3.4 MB`, `120 GB`."""
    power = next((power for power in (1, 2) if count < 1000 ** (power + 1)), 3)
    count /= 1000**power
    return f"{count:{'.1f' if count < 10 else ',.0f'}} {('kB', 'MB', 'GB')[power - 1]}"


def counted(count: int, noun: str, verb: str = "") -> str:
    """`1 file`, `2 files`; with a verb `1 line bills`, `2 lines bill`."""
    is_one = count == 1
    own = f" {_OF_ONE.get(verb, f'{verb}s') if is_one else verb}" if verb else ""
    return f"{count:,} {noun}{'' if is_one else 's'}{own}"
