"""A pack as a file: a zip whose manifest.json holds the sha256 of every member; same members, same bytes."""

import hashlib
import json
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_IFMT, S_IFREG
from struct import unpack_from
from typing import Any, BinaryIO

from pipelines.base.errors import CheckError, UsageError, shown
from pipelines.base.limits import UNPACK_RATIO, most_bytes
from pipelines.base.parse import ParseError, parse_json
from pipelines.base.paths import below, unsafe
from pipelines.warehouse.storage import fresh_file, sha256_of

MANIFEST = "manifest.json"
FORMAT = "trainledger evidence pack"
FORM = 1
# A file that cannot be opened, has another length, or uses an unsupported compression.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
_MANIFEST_BYTES = 64 << 20
# A second name of an entry, which some programs use and Python may not.
_UNICODE_PATH = 0x7075


def write_archive(out: Path, about: Mapping[str, Any], members: Mapping[str, bytes | Path]) -> str:
    """Write members and their manifest to `out`, which appears whole or not at all; the manifest's sha256."""
    named = {name: _sealed(members[name]) for name in sorted(members)}
    manifest = as_json({"format": FORMAT, "form": FORM, **about, "members": named})
    with fresh_file(out) as fresh, zipfile.ZipFile(fresh, "w") as archive:
        for name, content in [(MANIFEST, manifest), *((name, members[name]) for name in named)]:
            _add(archive, name, content)
    return hashlib.sha256(manifest).hexdigest()


def as_json(content: Any) -> bytes:
    return (json.dumps(content, default=str, indent=1, sort_keys=True) + "\n").encode()


def refuse_no_file(pack: Path) -> None:
    """UsageError for a pack that is not there, or is a folder."""
    if pack.is_dir():
        raise _no_pack(pack)
    if not pack.is_file():
        raise UsageError(f"{pack} does not exist; expected the zip file that `trainledger report --pack` wrote.")


class Pack:
    """A pack, opened. UsageError for what is none."""

    def __init__(self, path: Path):
        self.path = path
        refuse_no_file(path)
        try:
            self._zip = zipfile.ZipFile(path)
            text = self.read(MANIFEST) if self._size(MANIFEST) <= _MANIFEST_BYTES else b""
            self.about: dict[str, Any] = parse_json(text)
            self.members = {
                str(name): (str(entry["sha256"]), int(entry["bytes"])) for name, entry in self.about["members"].items()
            }
            is_ours = self.about["format"] == FORMAT
        except (*_DAMAGE, KeyError, ValueError, TypeError, AttributeError):
            raise _no_pack(path) from None
        if not is_ours:
            raise _no_pack(path)
        if self.about.get("form") != FORM:
            form, made = (f"{self.about.get(key)!a:.80}" for key in ("form", "code_revision"))
            raise UsageError(f"{path} is a pack of form {form}, made by revision {made}; verify it with that version.")
        self.seal = hashlib.sha256(text).hexdigest()

    def read(self, name: str) -> bytes:
        """A member's bytes; CheckError where they cannot be read."""
        with self._open(name) as stream:
            return stream.read()

    def json(self, name: str) -> Any:
        """The content of a JSON member; CheckError where it is not JSON."""
        try:
            return parse_json(self.read(name))
        except ParseError as error:
            raise self.error(f"{name} {error}") from None

    def error(self, problem: str) -> CheckError:
        """The error to raise for a pack that is not as packs are written."""
        return CheckError(f"{self.path}: {problem}; have the pack sent again.")

    def malformed(self, name: str) -> CheckError:
        """The error to raise for a record that is not as packs are written."""
        return self.error(f"{name} does not have the form of such a record")

    def path_below(self, folder: Path, name: str) -> Path:
        """The path of a name from the pack below `folder`; CheckError for a name that leads elsewhere."""
        return below(folder, name, error=CheckError, where=f"{self.path}: ", fix="have the pack sent again")

    def extract(self, name: str, folder: Path, place: str) -> Path:
        """Write a member to `place` below `folder`, as a new file; CheckError where that is not possible."""
        path = self.path_below(folder, place)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Exclusive: never over a file that is there, nor through a link.
            with path.open("xb") as file, self._open(name) as stream:
                shutil.copyfileobj(stream, file, 1 << 20)
        except (FileExistsError, NotADirectoryError):
            raise self.error(f"{shown(name)} has the path of another member") from None
        except OSError as error:
            problem = f"{shown(name)} cannot be written below {folder} ({error.strerror})"
            raise CheckError(f"{self.path}: {problem}; free space there, or have the pack sent again.") from None
        return path

    def below(self, folder: str) -> list[str]:
        return sorted(name for name in self.members if name.startswith(f"{folder}/"))

    def tampered(self) -> Iterator[str]:
        """A sentence for every member that differs from the manifest, is missing, or was added."""
        entries = self._zip.infolist()
        there = Counter(info.filename for info in entries)
        for name, (seal, size) in self.members.items():
            if unsafe(name) or not name.isprintable():
                yield f"{shown(name)} is not a name of a member"
            elif not there[name]:
                yield f"{name} is missing"
            elif self._size(name) > most_bytes(self._zip.getinfo(name).compress_size):
                yield f"{name} unpacks to more than {UNPACK_RATIO} times its bytes"
            elif self._size(name) != size or self._digest(name) != seal:
                yield f"{name} is not what was packed"
        yield from (f"{shown(name)} was added" for name in there if name not in self.members and name != MANIFEST)
        yield from (f"{shown(name)} is there {count} times" for name, count in there.items() if count > 1)
        yield from (f"{shown(info.filename)} is not an ordinary file" for info in entries if not _is_file(info))

    def close(self) -> None:
        self._zip.close()

    def _open(self, name: str) -> BinaryIO:
        try:
            return self._zip.open(name)  # type: ignore[return-value]
        except (*_DAMAGE, KeyError):
            raise self.error(f"{name} cannot be read") from None

    def _size(self, name: str) -> int:
        return self._zip.getinfo(name).file_size

    def _digest(self, name: str) -> str | None:
        try:
            with self._open(name) as stream:
                return sha256_of(stream)
        except (*_DAMAGE, CheckError):
            return None


def _no_pack(path: Path) -> UsageError:
    return UsageError(f"{path} is not an evidence pack; expected the zip file that `trainledger report --pack` wrote.")


def _is_file(info: zipfile.ZipInfo) -> bool:
    """Whether an entry is an ordinary file, under one name for every program that reads it."""
    # A packer that knows no kinds of files writes none; Python cuts a name at its first NUL.
    is_plain = S_IFMT(info.external_attr >> 16) in (0, S_IFREG) and "\0" not in info.orig_filename
    return is_plain and _UNICODE_PATH not in _extra_fields(info.extra)


def _extra_fields(extra: bytes) -> Iterator[int]:
    """The ids of the fields that follow the name of an entry."""
    while len(extra) >= 4:
        kind, size = unpack_from("<HH", extra)
        yield kind
        extra = extra[4 + size :]


def _sealed(content: bytes | Path) -> dict[str, Any]:
    if isinstance(content, bytes):
        return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return {"sha256": sha256_of(content.open("rb")), "bytes": content.stat().st_size}


def _add(archive: zipfile.ZipFile, name: str, content: bytes | Path) -> None:
    # The time and the system that a zip notes would differ from pack to pack.
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, 0o644 << 16
    # Parquet is compressed already.
    info.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    if isinstance(content, bytes):
        archive.writestr(info, content)
        return
    info.file_size = content.stat().st_size
    with content.open("rb") as stream, archive.open(info, "w") as member:
        shutil.copyfileobj(stream, member, 1 << 20)
