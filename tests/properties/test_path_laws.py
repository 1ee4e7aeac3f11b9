"""Whatever a name from outside is made of, it leads to a path below its folder or to an error."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.base.errors import CheckError, SourceError
from pipelines.base.paths import below
from pipelines.evidence.archive import FORM, FORMAT, Pack
from pipelines.warehouse.stores import open_store

# What leads out of folders, and what stands in the folder of a test.
PARTS = ("", ".", "..", "...", ".. ", " ", "a", "b.json", "C:", "c:a", "NUL", "~", "${HOME}", "%2e%2e", "．．", "a\0")
THERE = ("file", "folder", "in", "out", "loop", "deep")
LONG = st.integers(1, 1_100).map(lambda length: "n" * length)
PART = st.one_of(st.sampled_from((*PARTS, *THERE)), st.text(max_size=4), LONG)
NAME = st.builds(
    lambda start, parts, between: start + between.join(parts),
    st.sampled_from(("", "", "", "/", "//", "\\\\server\\", "C:\\", "../")),
    st.lists(PART, min_size=1, max_size=6),
    st.sampled_from(("/", "/", "/", "//", "\\")),
)
PLAIN = st.lists(st.from_regex(r"[a-zA-Z0-9_=][a-zA-Z0-9_=.@+-]{0,12}", fullmatch=True), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder with files and links in it, next to a folder that no name may reach."""
    with TemporaryDirectory() as above:
        root, outside = Path(above, "root"), Path(above, "outside")
        (root / "folder").mkdir(parents=True)
        outside.mkdir()
        (outside / "secret").write_bytes(b"secret")
        (root / "file").write_bytes(b"file")
        (root / "in").symlink_to("folder")
        (root / "out").symlink_to(outside)
        (root / "loop").symlink_to("loop")
        (root / "folder" / "deep").symlink_to("../../outside")
        yield root


def outside_of(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in root.parent.rglob("*")
        if not path.is_relative_to(root)
    }


def is_inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


@settings(max_examples=500, deadline=None)
@given(name=NAME, inner_links=st.booleans())
def test_a_path_is_inside_its_folder_or_refused(place: Path, name: str, inner_links: bool) -> None:
    try:
        path = below(place, name, inner_links=inner_links)
    except SourceError as error:
        assert "\n" not in str(error) and len(str(error)) < 4_000
        return
    assert path == place / name and is_inside(path, place)
    steps = [place.joinpath(*path.relative_to(place).parts[:count]) for count in range(1, 9)]
    assert inner_links or not any(step.is_symlink() for step in steps)
    # The same on a system that has drives, and splits names at backslashes.
    for kind in (PurePosixPath, PureWindowsPath):
        parts = kind("folder", name).parts
        assert parts[0] == "folder" and len(parts) == 1 + len(name.split("/")) and ".." not in parts


@given(parts=PLAIN)
def test_a_plain_name_is_never_refused(place: Path, parts: list[str]) -> None:
    assert below(place / "new", "/".join(parts)) == place.joinpath("new", *parts)


@settings(max_examples=100, deadline=None)
@given(name=NAME)
@example(name="//etc/passwd")
@example(name="out/new")
def test_a_store_reads_and_writes_nothing_outside(place: Path, name: str) -> None:
    before = outside_of(place)
    store = open_store(str(place))
    for use in (store.read, lambda key: store.write(key, b"evil"), store.delete, store.list, store.exists):
        with suppress(SourceError):
            assert use(name) != b"secret"
    assert outside_of(place) == before


@settings(max_examples=200, deadline=None)
@given(name=NAME, mode=st.sampled_from((0, 0o100644, 0o120777, 0o040755, 0o010644)))
@example(name="/../outside/secret", mode=0)
@example(name="out/new", mode=0o120777)
def test_a_pack_writes_nothing_outside(place: Path, name: str, mode: int) -> None:
    """A member of any name and kind, under a manifest that fits."""
    before = outside_of(place)
    with TemporaryDirectory() as folder:
        pack = packed(Path(folder, "pack.zip"), name, mode)
        root = Path(folder, "root")
        root.mkdir()
        (root / "out").symlink_to(place.parent / "outside")
        try:
            assert all("\n" not in sentence for sentence in pack.tampered())
            with suppress(CheckError):
                written = pack.extract(name, root, name)
                assert is_inside(written, root) and written.read_bytes() == b"evil"
                assert written.is_file() and not written.is_symlink()
        finally:
            pack.close()
        assert sorted(path.name for path in Path(folder).iterdir()) == ["pack.zip", "root"]
    assert outside_of(place) == before


def packed(path: Path, name: str, mode: int) -> Pack:
    listed = {name: {"sha256": hashlib.sha256(b"evil").hexdigest(), "bytes": 4}}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": FORMAT, "form": FORM, "members": listed}))
        with suppress(UnicodeEncodeError):
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, b"evil")
    path.write_bytes(content.getvalue())
    return Pack(path)
