"""What a reader asks in an address: every word is one of a list, a number, or text that only ever is a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pipelines.errors import UsageError

# More than a name is long.
_LONGEST = 300


class NotFoundError(UsageError):
    """What is asked for is not there."""


def text(asked: Mapping[str, str], name: str) -> str:
    """Words as typed, without what no name holds."""
    value = asked.get(name, "").strip()
    if len(value) > _LONGEST or "\0" in value:
        raise UsageError(f"The {name} asked for is longer than {_LONGEST} characters or no text; ask for less.")
    return value


def choice(asked: Mapping[str, str], name: str, known: Collection[str], otherwise: str = "") -> str:
    """One of what is known, or `otherwise` where nothing is asked. UsageError for anything else."""
    value = text(asked, name)
    if not value:
        return otherwise
    if value not in known:
        some = ", ".join(list(known)[:8]) or "none"
        raise UsageError(f"There is no {name.replace('_', ' ')} {value!r} here; choose one of {some}.")
    return value


def number(asked: Mapping[str, str], name: str, otherwise: int, most: int) -> int:
    """A whole number from 1 to `most`. NotFoundError for anything else."""
    value = text(asked, name)
    if not value:
        return otherwise
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):
        raise NotFoundError(f"There is no {name} {value!r}; there are {most}.")
    return int(value)
