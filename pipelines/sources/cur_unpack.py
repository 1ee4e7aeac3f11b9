"""A delivered file opened as the bytes of one csv, whether plain, gzip or ZIP."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from pipelines.errors import SourceError

PARQUET, GZIP, ZIP = b"PAR1", b"\x1f\x8b", b"PK"
# A header of a thousand columns is some 50 KB.
_HEAD_BYTES = 4 << 20


class _Counted(io.RawIOBase):
    """A file that reports how many of its bytes were read."""

    def __init__(self, file: IO[bytes], on_bytes: Callable[[int], None]):
        self._file, self._on_bytes = file, on_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:
        block = self._file.read(len(buffer))
        buffer[: len(block)] = block
        self._on_bytes(len(block))
        return len(block)


def magic(path: Path) -> bytes:
    """The first four bytes of a file, by which its real format is known."""
    with path.open("rb") as file:
        return file.read(4)


@contextmanager
def unpacked(path: Path, where: str, on_bytes: Callable[[int], None] = lambda count: None) -> Iterator[pa.NativeFile]:
    """The csv bytes of a delivered file; `on_bytes` hears of packed bytes as they are read.

    Raises SourceError, naming the file as `where`, when it ends early or a ZIP does not hold just one file.
    """
    start = magic(path)
    try:
        with path.open("rb") as packed:
            if start.startswith(ZIP):
                with ZipFile(packed) as archive, archive.open(_only_member(archive, where)) as member:
                    yield pa.PythonFile(member, "r")
                on_bytes(path.stat().st_size)
                return
            stream = pa.PythonFile(_Counted(packed, on_bytes), "r")
            yield pa.CompressedInputStream(stream, "gzip") if start.startswith(GZIP) else stream
    except (OSError, EOFError, BadZipFile, RuntimeError, NotImplementedError) as error:
        raise SourceError(f"{where} is cut short or damaged ({error}); have it delivered again.") from None


def read_header(path: Path, where: str) -> tuple[list[str], bool]:
    """The column names of a delivered csv, and whether anything follows them."""
    with unpacked(path, where) as stream:
        head = stream.read(_HEAD_BYTES)
    text = io.StringIO(head.decode("utf-8-sig", errors="replace"), newline="")
    names = next(csv.reader(text), [])
    if not any(names):
        raise SourceError(f"{where} is empty, without even a header; have it delivered again.")
    return names, bool(text.read(1))


def _only_member(archive: ZipFile, where: str) -> str:
    members = [member.filename for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        names = f" ({', '.join(members[:3])})" if members else ""
        raise SourceError(f"{where} holds {len(members)} files{names} where a bill holds one; have it delivered again.")
    return members[0]
