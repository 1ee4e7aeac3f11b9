"""The revision of the code: which files decide what is built and whether it passes its checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pipelines import __version__, house

_PACKAGE = Path(house.__file__).parent
# The code that reads SQL and contracts, and the code that makes tables itself.
_CODE = ("models", "quality", "transforms", "proof")


@cache
def code_revision() -> str:
    """The version of the product and a digest of every model and contract in it.

    Files are compared byte by byte, comments included: parsing them takes longer than all other planning.
    """
    seal = hashlib.sha256()
    for name, path in sorted(_files()):
        content = path.read_bytes()
        seal.update(f"{name}\n{len(content)}\n".encode() + content)
    return f"{__version__}+{seal.hexdigest()[:8]}"


def _files() -> Iterator[tuple[str, Path]]:
    """Each file with a name that is the same in a checkout and in a wheel."""
    for root in (house.SQL, house.EXPECTATIONS):
        for pattern in ("*.sql", "*.csv", "*.yml"):
            yield from ((path.relative_to(house.HOUSE).as_posix(), path) for path in root.rglob(pattern))
    for package in _CODE:
        yield from ((path.relative_to(_PACKAGE).as_posix(), path) for path in (_PACKAGE / package).rglob("*.py"))
