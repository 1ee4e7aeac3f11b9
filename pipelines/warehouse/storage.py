"""Stored bytes: a folder or an S3 prefix, by keys relative to its root."""

from __future__ import annotations

import hashlib
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from errno import EINVAL
from pathlib import Path
from typing import BinaryIO


def sha256_of(stream: BinaryIO) -> str:
    """The sha256 of all that a stream gives, as hex digits; it is closed then."""
    with stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Object:
    """Something stored: its key below the root, bytes, a tag that changes with its content, and its time."""

    key: str
    size: int
    etag: str
    modified_at: datetime


class Store(ABC):
    """A collection of objects. Every key is relative, with '/' between its parts; none may leave the root."""

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
    def move(self, key: str, to: str) -> None:
        """Give an object another key, replacing what is there; its bytes stay in the store."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write an object whole, replacing what is there."""

    @abstractmethod
    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object only if there is none of that key; of several writers one gets True."""

    @abstractmethod
    def update(self, key: str, change: Callable[[bytes | None], bytes]) -> None:
        """Write what `change` makes of an object's bytes (None: absent); each of several writers sees the one before.

        `change` may be called again.
        """

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove an object; a missing one is fine."""

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


@contextmanager
def fresh_file(path: Path) -> Iterator[Path]:
    """A temporary path next to `path` that takes its place when the block ends well."""
    if path.exists() and not path.is_file():
        # A device or a folder is not ours to replace.
        raise OSError(EINVAL, "it is not an ordinary file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_next_to(path)
    try:
        yield temporary
        settle(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def settle(path: Path) -> None:
    """Write a file's bytes to the disk before it gets its name."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def temporary_next_to(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")
