"""Files of JSON lines: which of a source are such files, and their lines."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import BinaryIO

from pipelines.base.errors import MalformedError
from pipelines.base.limits import UNPACK_RATIO, most_bytes
from pipelines.warehouse.storage import Object

SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_BLOCK_BYTES = 1 << 20
_LINE_BYTES = 16 << 20


def by_suffix(listed: Sequence[Object], suffixes: tuple[str, ...] = SUFFIXES) -> tuple[list[Object], list[str]]:
    """The files with one of these suffixes, and the keys of the others that are not hidden."""
    others = [item.key for item in listed if not item.key.endswith(suffixes)]
    files = [item for item in listed if item.key.endswith(suffixes)]
    return files, [key for key in others if not key.rpartition("/")[2].startswith((".", "_"))]


def skipped(location: str | None, keys: Sequence[str], fix: str) -> list[str]:
    """The warning about files that are not read, if there are any; `fix` is how to name them."""
    files = f"{keys[0]} is" if len(keys) == 1 else f"{len(keys)} files like {keys[0]} are" if keys else ""
    return [f"{location}: {files} skipped{fix}."] if keys else []


def blocks_of_file(
    key: str, content: BinaryIO, size: int, where: str, block_bytes: int = _BLOCK_BYTES
) -> Iterator[bytes]:
    """The content of a file of `size` bytes, unpacked if its key ends in .gz, in blocks of whole lines.

    Only the last line of the last block can lack its end. MalformedError for one that unpacks to too much, has a line
    that is too long or is not complete.
    """
    stream = gzip.GzipFile(fileobj=content) if key.endswith(".gz") else content
    rest, unpacked = b"", 0
    while chunk := _read(stream, block_bytes, where):
        if not unpacked:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        unpacked += len(chunk)
        if unpacked > most_bytes(size):
            fix = "check what wrote it, or unpack it to .jsonl"
            raise MalformedError(f"{where} unpacks to more than {UNPACK_RATIO} times its {size:,} bytes; {fix}.")
        end = chunk.rfind(b"\n") + 1
        if end:
            yield rest + chunk[:end] if rest else chunk[:end]
        rest = chunk[end:] if end else rest + chunk
        if len(rest) > _LINE_BYTES:
            raise MalformedError(f"{where} has a line of over {_LINE_BYTES >> 20} MiB; write one event a line.")
    if rest:
        yield rest


def lines_of_file(key: str, content: bytes, where: str) -> Iterator[bytes]:
    """The lines of a file without their ends; the errors of `blocks_of_file`."""
    for block in blocks_of_file(key, BytesIO(content), len(content), where):
        yield from block.removesuffix(b"\n").split(b"\n")


def _read(stream: BinaryIO | gzip.GzipFile, count: int, where: str) -> bytes:
    try:
        return stream.read(count)
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedError(f"{where} is not a complete gzip file ({error}); write it again.") from None
