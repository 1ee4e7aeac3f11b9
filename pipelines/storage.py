"""The one door to bytes: a folder or an S3 prefix, by keys relative to its root."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from errno import EINVAL
from pathlib import Path
from typing import BinaryIO

from pipelines.address import redacted
from pipelines.errors import SourceError, UsageError


@dataclass(frozen=True)
class Object:
    """Something stored: its key below the root, bytes, a tag that changes with its content, and its time."""

    key: str
    size: int
    etag: str
    modified_at: datetime


class Store(ABC):
    """A place of objects. Every key is relative, with '/' between its parts; none may leave the root."""

    location: str

    @abstractmethod
    def list(self, prefix: str = "") -> list[Object]:
        """All objects whose key starts with `prefix`, by key."""

    @abstractmethod
    def open(self, key: str) -> BinaryIO:
        """A stream of an object's bytes, to be closed by the caller."""

    @abstractmethod
    def download(self, key: str, path: Path) -> None:
        """Copy an object to a local file, which appears whole or not at all."""

    @abstractmethod
    def upload(self, path: Path, key: str) -> None:
        """Copy a local file to an object, which appears whole or not at all."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write an object whole, replacing what is there."""

    @abstractmethod
    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object only if there is none of that key; of several writers one gets True."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether there is an object of that key."""

    @abstractmethod
    def uri(self, key: str) -> str:
        """The whole address of a key."""

    def delta_options(self) -> dict[str, str] | None:
        """What a Delta client needs to reach the store; None for a folder."""
        return None

    def read(self, key: str) -> bytes:
        """An object's bytes."""
        with self.open(key) as stream:
            return stream.read()


def open_store(
    location: str,
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    hurried: bool = False,
) -> Store:
    """The store at a folder or an `s3://bucket/prefix`; options matter to S3 alone. A `hurried` one soon gives up.

    Raises UsageError for any other location.
    """
    if location.startswith("s3://"):
        from pipelines.storage_s3 import S3Store

        return S3Store(location, endpoint_url=endpoint_url, region=region, profile=profile, hurried=hurried)
    if "://" in location:
        raise UsageError(f"{redacted(location)} is neither a folder nor s3://bucket/prefix; change `location`.")
    return LocalStore(location)


def checked_key(key: str, location: str) -> str:
    """The key, if it stays below the root; SourceError if it does not."""
    parts = key.split("/")
    if not key or "\0" in key or "\\" in key or ".." in parts or "" in parts[:-1]:
        raise SourceError(f"{key!r} is no key below {location}; nothing outside of it is read.")
    return key


@contextmanager
def fresh_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well."""
    if path.exists() and not path.is_file():
        # A device or a folder is not ours to replace.
        raise OSError(EINVAL, "it is no ordinary file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        yield temporary
        settle(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def settle(path: Path) -> None:
    """Have a file's bytes on the disk before a name promises them."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


class LocalStore(Store):
    """A folder. A file's size and time of change stand for its content."""

    def __init__(self, location: str):
        self.location = location
        self._root = Path(location)

    def list(self, prefix: str = "") -> list[Object]:
        found = []
        start = self._path(prefix).parent if prefix else self._root
        if prefix.endswith("/"):
            start = self._path(prefix)
        if not start.is_dir() and self._root.is_dir():
            return []
        for folder, below, names in os.walk(start, onerror=self._refused):
            for name in below:
                # os.walk stays out of linked folders; what they hold outside must not look undelivered.
                self._listed(Path(folder) / name)
            for name in names:
                path = Path(folder) / name
                key = path.relative_to(self._root).as_posix()
                if key.startswith(prefix) and not _is_temporary(name):
                    found.append(self._object(key, self._listed(path)))
        return sorted((item for item in found if item), key=lambda item: item.key)

    def open(self, key: str) -> BinaryIO:
        with self._telling(key):
            return self._path(key).open("rb")

    def download(self, key: str, path: Path) -> None:
        with self.open(key) as stream, fresh_file(path) as temporary, temporary.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)

    def upload(self, path: Path, key: str) -> None:
        with self._telling(key), fresh_file(self._path(key)) as temporary:
            shutil.copyfile(path, temporary)

    def write(self, key: str, data: bytes) -> None:
        with self._telling(key), fresh_file(self._path(key)) as temporary:
            temporary.write_bytes(data)

    def write_new(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        temporary = _temporary(path)
        with self._telling(key):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_bytes(data)
                settle(temporary)
                # A link, unlike a rename, fails where the name is taken.
                os.link(temporary, path)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
        return True

    def delete(self, key: str) -> None:
        with self._telling(key):
            self._path(key).unlink(missing_ok=True)

    def exists(self, key: str) -> bool:
        return self._path(key).is_file()

    def uri(self, key: str) -> str:
        return str(self._root / key)

    def _path(self, key: str) -> Path:
        return self._inside(self._root / checked_key(key, self.location))

    def _listed(self, path: Path) -> Path:
        """What a walk from inside the root came by: only a link can lead out."""
        return self._inside(path) if path.is_symlink() else path

    def _inside(self, path: Path) -> Path:
        try:
            is_inside = path.resolve().is_relative_to(self._root.resolve())
        except (OSError, RuntimeError):
            # A link that leads to itself.
            is_inside = False
        if not is_inside:
            raise SourceError(f"{path} leads outside {self.location}; nothing outside of it is read.")
        return path

    def _object(self, key: str, path: Path) -> Object | None:
        try:
            seen = path.stat()
        except FileNotFoundError:
            # Removed since it was listed, or a link to nothing.
            return None
        if not stat.S_ISREG(seen.st_mode):
            # Reading a pipe would wait for ever.
            return None
        changed = datetime.fromtimestamp(seen.st_mtime, UTC)
        return Object(key, seen.st_size, f"{seen.st_size}-{seen.st_mtime_ns}", changed)

    def _refused(self, error: OSError) -> None:
        raise SourceError(f"{error.filename} cannot be listed: {error.strerror}; check `location`.") from None

    @contextmanager
    def _telling(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = Path(self.location) / key
            mend = "check the name, its permissions and the disk"
            raise SourceError(f"{where}: {error.strerror}; {mend}.") from None


def _temporary(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")
