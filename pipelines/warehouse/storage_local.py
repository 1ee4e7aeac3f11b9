"""A folder as a store: its files by key, and nothing outside of it."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from pipelines.base.errors import MalformedError, SourceError, UnlistedError
from pipelines.base.paths import below
from pipelines.warehouse.storage import Object, Store, fresh_file, is_temporary, settle, temporary_next_to


class LocalStore(Store):
    """A folder. A file's size and time of change stand for its content."""

    def __init__(self, location: str):
        self.location = location
        self._root = Path(location)

    def list(self, prefix: str = "") -> list[Object]:
        found = []
        named = self._path(prefix.removesuffix("/")) if prefix else self._root
        start = named if not prefix or prefix.endswith("/") else named.parent
        if not start.is_dir() and self._root.is_dir():
            return []
        for folder, entries in self._folders(start):
            above = "" if folder == self._root else f"{folder.relative_to(self._root).as_posix()}/"
            for entry in entries:
                key = above + entry.name
                if key.startswith(prefix) and not is_temporary(entry.name):
                    found.append(self._object(key, self._listed(entry)))
        return sorted((item for item in found if item), key=lambda item: item.key)

    def open(self, key: str) -> BinaryIO:
        with self._errors(key):
            return self._path(key).open("rb")

    def download(self, key: str, path: Path) -> None:
        with self.open(key) as stream, fresh_file(path) as temporary, temporary.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)

    def upload(self, path: Path, key: str) -> None:
        with self._errors(key), fresh_file(self._path(key)) as temporary:
            shutil.copyfile(path, temporary)

    def move(self, key: str, to: str) -> None:
        with self._errors(key):
            self._path(to).parent.mkdir(parents=True, exist_ok=True)
            self._path(key).replace(self._path(to))

    def write(self, key: str, data: bytes) -> None:
        with self._errors(key), fresh_file(self._path(key)) as temporary:
            temporary.write_bytes(data)

    def write_new(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        temporary = temporary_next_to(path)
        with self._errors(key):
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

    def update(self, key: str, change: Callable[[bytes | None], bytes]) -> None:
        with self._errors(key):
            self._root.mkdir(parents=True, exist_ok=True)
            with (self._root / ".update.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self.write(key, change(self.read(key) if self.exists(key) else None))

    def delete(self, key: str) -> None:
        with self._errors(key):
            self._path(key).unlink(missing_ok=True)

    def exists(self, key: str) -> bool:
        return self._path(key).is_file()

    def uri(self, key: str) -> str:
        return str(self._root / key)

    def _path(self, key: str) -> Path:
        # A listed name that is refused is a fault of that file alone.
        return below(self._root, key, inner_links=True, error=MalformedError)

    def _folders(self, start: Path) -> Iterator[tuple[Path, Sequence[os.DirEntry[str]]]]:
        """Each folder from `start` on, with its files; linked ones are not entered."""
        try:
            with os.scandir(start) as found:
                entries = list(found)
        except OSError as error:
            raise UnlistedError(f"{error.filename} cannot be listed: {error.strerror}") from None
        # Files behind a link that leads outside must not look undelivered.
        below = [self._listed(entry) for entry in entries if _is_folder(entry)]
        yield start, [entry for entry in entries if not _is_folder(entry)]
        for entry in below:
            if not entry.is_symlink():
                yield from self._folders(start / entry.name)

    def _listed(self, entry: os.DirEntry[str]) -> os.DirEntry[str]:
        """An entry found below the root: only a link can lead out."""
        if entry.is_symlink():
            below(self._root, Path(entry.path).relative_to(self._root).as_posix(), inner_links=True)
        return entry

    def _object(self, key: str, entry: os.DirEntry[str]) -> Object | None:
        try:
            seen = entry.stat()
        except FileNotFoundError:
            # Removed since it was listed, or a link to nothing.
            return None
        if not stat.S_ISREG(seen.st_mode):
            # Reading a pipe would wait for ever.
            return None
        changed = datetime.fromtimestamp(seen.st_mtime, UTC)
        return Object(key, seen.st_size, f"{seen.st_size}-{seen.st_mtime_ns}", changed)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = Path(self.location) / key
            # What was removed after it was listed is a fault of that file alone.
            fault = MalformedError if isinstance(error, FileNotFoundError) else SourceError
            raise fault(f"{where}: {error.strerror}; check the name, its permissions and the disk.") from None


def remove_temporary(root: Path, before: datetime) -> None:
    """Remove what killed writers, also the table library, left half written below a folder before a time."""
    for path in root.rglob("*.tmp"):
        # Readers may be writing too, but not for so long.
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < before.timestamp():
                path.unlink()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads to itself.
        return False
