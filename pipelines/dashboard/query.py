"""The parameters of a request: each is one of a list, a number, or text that is only ever used as a value."""

from collections.abc import Collection, Mapping

from pipelines.base.errors import UsageError, shown

# More than anyone searches for.
_LONGEST = 300


class NotFoundError(UsageError):
    """The requested page or row does not exist."""


class WithheldError(UsageError):
    """The requested page shows more than the teams of the reader."""


def text(request: Mapping[str, str], name: str) -> str:
    """Words as typed, to search with: without what no search needs."""
    value = request.get(name, "").strip()
    if len(value) > _LONGEST or "\0" in value:
        raise UsageError(f"The {name} is longer than {_LONGEST} characters or not text; shorten it.")
    return value


def choice(request: Mapping[str, str], name: str, known: Collection[str], otherwise: str = "") -> str:
    """One of the known values, or `otherwise` without one. UsageError for any other value."""
    value = request.get(name, "")
    if not value:
        return otherwise
    if value not in known:
        some = ", ".join(list(known)[:8]) or "none"
        raise UsageError(f"There is no {name.replace('_', ' ')} {shown(value)} here; choose one of {some}.")
    return value


def number(request: Mapping[str, str], name: str, otherwise: int, most: int) -> int:
    """A whole number from 1 to `most`. NotFoundError for anything else."""
    value = text(request, name)
    if not value:
        return otherwise
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):
        raise NotFoundError(f"There is no {name} {shown(value)}; there are {most}.")
    return int(value)
