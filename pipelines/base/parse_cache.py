"""Parsed content of the product files, kept between processes: one JSON file per installation, in the user's cache.

A part is valid as long as its key, a digest of all that it was parsed from. Where the file is missing, damaged or not
writable, everything is parsed again; no command fails.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.base import resources


def kept(part: str, made_from: object, make: Callable[[], Any]) -> Any:
    """The value of a part, which must be valid as JSON: as kept where it was made from the same, else made and kept.

    What it is made from is compared by its text.
    """
    key = hashlib.sha256(repr(made_from).encode()).hexdigest()
    if part not in _parts() or _parts()[part][0] != key:
        _parts()[part] = [key, make()]
        _write()
    return _parts()[part][1]


def _write() -> None:
    if not (path := _path()):
        return
    body = json.dumps(_parts()).encode()
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_bytes(_seal(body) + b"\n" + body)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError:
        # A full disk or a home that cannot be written costs time, nothing else.
        return


def digest_of(folder: Path, pattern: str) -> str:
    """A digest of the names and contents of the files below a folder."""
    seal = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        seal.update(f"{path.relative_to(folder).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return seal.hexdigest()


@cache
def _parts() -> dict[str, list[Any]]:
    """Each part's key and value, read once in a process."""
    try:
        seal, _, body = (_path() or Path()).read_bytes().partition(b"\n")
        # A file may be cut short or altered and still be JSON, or be of another version.
        parts = json.loads(body) if seal == _seal(body) else {}
        return parts if isinstance(parts, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _path() -> Path | None:
    folder = cache_folder()
    # Another checkout or version has other files.
    name = hashlib.sha256(str(resources.ROOT).encode()).hexdigest()[:16]
    return folder / f"parsed-{name}.json" if folder else None


def _seal(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def cache_folder() -> Path | None:
    """This user's cache folder, $XDG_CACHE_HOME/trainledger or ~/.cache/trainledger; None without a home."""
    # The standard has a relative path ignored.
    if (named := Path(os.environ.get("XDG_CACHE_HOME", ""))).is_absolute():
        return named / "trainledger"
    try:
        return Path.home() / ".cache" / "trainledger"
    except RuntimeError:
        return None
