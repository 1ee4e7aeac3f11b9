"""What a reader asks in an address: every word is one of a list, a number, or text that only ever is a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pipelines.base.errors import UsageError, shown

# More than anyone searches for.
_LONGEST = 300


class NotFoundError(UsageError):
    """What is asked for is not there."""


def exact(asked: Mapping[str, str], name: str) -> str:
    """The name of a thing to look up, as it is: what things are called is not ours to say."""
    return asked.get(name, "")


def text(asked: Mapping[str, str], name: str) -> str:
    """Words as typed, to search with: without what no search needs."""
    value = asked.get(name, "").strip()
    if len(value) > _LONGEST or "\0" in value:
        raise UsageError(f"The {name} asked for is longer than {_LONGEST} characters or no text; ask for less.")
    return value


def choice(asked: Mapping[str, str], name: str, known: Collection[str], otherwise: str = "") -> str:
    """One of what is known, or `otherwise` where nothing is asked. UsageError for anything else."""
    value = exact(asked, name)
    if not value:
        return otherwise
    if value not in known:
        some = ", ".join(list(known)[:8]) or "none"
        raise UsageError(f"There is no {name.replace('_', ' ')} {shown(value)} here; choose one of {some}.")
    return value


def number(asked: Mapping[str, str], name: str, otherwise: int, most: int) -> int:
    """A whole number from 1 to `most`. NotFoundError for anything else."""
    value = text(asked, name)
    if not value:
        return otherwise
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):
        raise NotFoundError(f"There is no {name} {shown(value)}; there are {most}.")
    return int(value)
