"""A delivered file opened as the bytes of one csv, whether plain, gzip or ZIP."""

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import pyarrow as pa

from pipelines.base.errors import SourceError
from pipelines.base.limits import most_bytes
from pipelines.base.paths import unsafe

PARQUET, GZIP, ZIP = b"PAR1", b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
# A header of a thousand columns is some 50 KB.
_HEAD_BYTES = 4 << 20


@dataclass(frozen=True)
class Allowance:
    """How much a delivered file, named `where` in errors, may unpack to: `ratio` times its `size` in bytes."""

    where: str
    size: int
    ratio: float

    def check(self, unpacked_bytes: int) -> None:
        """Refuse, by a SourceError, what unpacks to more."""
        if unpacked_bytes > most_bytes(self.size, self.ratio):
            fix = "have it delivered again, or raise unpack_ratio of its [[billing]] entry if the bill is that large"
            raise SourceError(f"{self.where} unpacks to more than {self.ratio:g} times its {self.size:,} bytes; {fix}.")


class Tap(io.RawIOBase):
    """The bytes of a stream as they are read; each block is `met` on the way."""

    def __init__(self, stream: pa.NativeFile, met: Callable[[pa.Buffer], None]):
        self._stream, self._met = stream, met

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.read_buffer(size).to_pybytes()

    def read_buffer(self, size: int = -1) -> pa.Buffer:
        """The next bytes without a copy, as Arrow reads them."""
        # Steps bound the memory of a caller that reads everything.
        block = self._stream.read_buffer(_HEAD_BYTES if size < 0 else size)
        self._met(block)
        return block


def _measured(stream: pa.NativeFile, allowed: Allowance) -> pa.PythonFile:
    """Unpacked bytes, refused as soon as they are more than allowed."""
    count = 0

    def met(block: pa.Buffer) -> None:
        nonlocal count
        count += block.size
        allowed.check(count)

    return pa.PythonFile(Tap(stream, met), "r")


def magic(path: Path) -> bytes:
    """The first four bytes of a file, by which its real format is known."""
    with path.open("rb") as file:
        return file.read(4)


@contextmanager
def unpacked(
    path: Path, allowed: Allowance, on_bytes: Callable[[int], None] = lambda count: None
) -> Iterator[pa.NativeFile]:
    """The csv bytes of a delivered file; `on_bytes` is called with packed bytes as they are read.

    Raises SourceError, naming the file, when it ends early, unpacks to more than it may, or is a ZIP that does not
    hold just one file.
    """
    start = magic(path)
    try:
        with path.open("rb") as packed:
            if start.startswith(ZIP):
                with ZipFile(packed) as archive, archive.open(_only_member(archive, allowed)) as member:
                    yield _measured(pa.PythonFile(member, "r"), allowed)
                on_bytes(path.stat().st_size)
                return
            stream = pa.PythonFile(Tap(pa.PythonFile(packed, "r"), lambda block: on_bytes(block.size)), "r")
            if start.startswith(GZIP):
                stream = _measured(pa.CompressedInputStream(stream, "gzip"), allowed)
            yield stream
    except (OSError, EOFError, BadZipFile, RuntimeError, NotImplementedError) as error:
        raise SourceError(f"{allowed.where} is cut short or damaged ({error}); have it delivered again.") from None


def read_header(path: Path, allowed: Allowance) -> tuple[list[str], bool]:
    """The column names of a delivered csv, and whether anything follows them."""
    where = allowed.where
    with unpacked(path, allowed) as stream:
        head = stream.read(_HEAD_BYTES)
    if head.startswith((PARQUET, GZIP, *ZIP)):
        raise SourceError(f"{where} holds another packed file instead of a csv; have it delivered again.")
    _refuse_other_text(head, where)
    text = io.StringIO(head.decode("utf-8-sig", errors="replace"), newline="")
    try:
        names = next(csv.reader(text), [])
    except csv.Error as error:
        raise SourceError(f"{where} is not a CSV ({error}); have it delivered again.") from None
    if not any(names):
        raise SourceError(f"{where} is empty, without even a header; have it delivered again.")
    return names, bool(text.read(1))


def _refuse_other_text(head: bytes, where: str) -> None:
    """Spreadsheets save a csv in other ways than AWS writes it, and then no column is found."""
    line = head.partition(b"\n")[0]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"\x00" in line and line.strip(b"\x00")):
        raise SourceError(f"{where} is UTF-16 text where a bill is UTF-8; have it delivered again as AWS wrote it.")
    for sign, name in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars")):
        if line.count(sign) > line.count(b","):
            fix = "have it delivered again as AWS wrote it"
            raise SourceError(f"{where} separates its columns by {name} where a bill does by commas; {fix}.")


def _only_member(archive: ZipFile, allowed: Allowance) -> ZipInfo:
    members = [member for member in archive.infolist() if not member.is_dir()]
    shown = ", ".join(member.filename[:80] for member in members[:3])
    if len(members) != 1:
        held = f"{len(members)} files{f' ({shown})' if members else ''}"
        raise SourceError(f"{allowed.where} holds {held} where a bill holds one; have it delivered again.")
    (member,) = members
    # Packers on Windows separate folders their own way.
    if unsafe(member.filename.replace("\\", "/")):
        raise SourceError(f"{allowed.where} holds {shown}, a path that leads out of it; have it delivered again.")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise SourceError(f"{allowed.where} is packed in a way AWS does not use; have it delivered again.")
    allowed.check(member.file_size)
    return member
