"""Names from outside as paths: one function joins them below a folder and refuses every name that leads elsewhere."""

import os
import re
from pathlib import Path
from stat import S_ISLNK
from typing import Any

from pipelines.base.errors import SourceError, TrainledgerError, shown

# The longest key of S3, and the longest name of a file on common file systems.
_NAME_BYTES, _PART_BYTES = 1024, 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DRIVE = re.compile(r"[A-Za-z]:")
_FIX = "rename or replace it (nothing outside is read or written)"


def below(
    folder: Path,
    name: str,
    *,
    error: type[TrainledgerError] = SourceError,
    where: str = "",
    fix: str = _FIX,
    inner_links: bool = False,
) -> Path:
    """The path of `name` below `folder`, which may itself be a link. Parts of a name are separated by "/".

    Raises `error`, whose sentence begins with `where` and ends with `fix`, for a name that `unsafe` refuses and for
    one that passes through a link. With `inner_links` only links that lead out of `folder` are refused.
    """
    checked_name(name, folder, error=error, where=where, fix=fix)
    # As text: a build makes some thousand of these.
    path = str(folder).rstrip("/")
    for part in name.split("/"):
        path = f"{path}/{part}"
        if reason := _wrong_at(path, part, folder, inner_links):
            raise error(f"{where}{Path(path)} {reason}; {fix}.")
    return Path(path)


def checked_name(
    name: str, folder: Path | str, *, error: type[TrainledgerError] = SourceError, where: str = "", fix: str = _FIX
) -> str:
    """The name of something that is not a local file, such as an S3 object, checked as `below` checks names."""
    if reason := unsafe(name):
        raise error(f"{where}{shown(str(name))} is not a path inside {folder} ({reason}); {fix}.")
    return name


def unsafe(name: Any) -> str | None:
    """Why a name may lead out of the folder that it is joined to, on any system; None for a safe one."""
    if not isinstance(name, str) or not name:
        return "it is empty" if name == "" else "it is not text"
    if _CONTROL.search(name) or "\\" in name:
        return "it contains a backslash or a control character"
    if name.startswith("/"):
        return "it is an absolute path"
    for part in name.split("/"):
        if not part:
            return "it has an empty part"
        # Windows drops dots and spaces at the end of a part, so that ".. " is "..".
        if not part.strip(". "):
            return f"it has the part {part[:10]!r}"
        if _DRIVE.match(part):
            return "it has a drive letter"
    try:
        return f"it is longer than {_NAME_BYTES:,} bytes" if len(os.fsencode(name)) > _NAME_BYTES else None
    except UnicodeEncodeError:
        return "it is not valid Unicode"


def _wrong_at(path: str, name: str, folder: Path, inner_links: bool) -> str | None:
    """Why a path may not be used; None where it may, and where nothing is there."""
    if len(os.fsencode(name)) > _PART_BYTES:
        return f"has a name of more than {_PART_BYTES} bytes"
    try:
        if not S_ISLNK(os.lstat(path).st_mode):
            return None
    except OSError:
        # Nothing is there, or what keeps it from being looked at keeps it from being opened.
        return None
    if not inner_links:
        return "is a link"
    try:
        is_inside = Path(path).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        # A link that leads to itself.
        is_inside = False
    return None if is_inside else f"leads outside {folder}"
