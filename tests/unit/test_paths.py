"""A name from outside becomes a path below a folder, or a sentence that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.base.errors import CheckError, SourceError
from pipelines.base.paths import below, checked_name, unsafe

HOSTILE = {
    "": "it is empty",
    "/etc/passwd": "it is an absolute path",
    "//etc/passwd": "it is an absolute path",
    "bills//etc/passwd": "it has an empty part",
    "bills/": "it has an empty part",
    "..": "it has the part '..'",
    "a/../../b": "it has the part '..'",
    "a/./b": "it has the part '.'",
    "a/.. /b": "it has the part '.. '",
    "a/.../b": "it has the part '...'",
    "a/ /b": "it has the part ' '",
    "C:/Windows": "it has a drive letter",
    "a/c:b": "it has a drive letter",
    "..\\b": "it contains a backslash",
    "\\\\server\\share": "it contains a backslash",
    "a\0b": "a control character",
    "a\nb": "a control character",
    "a\x1b[2Jb": "a control character",
    "a\x85b": "a control character",
    "a\ud800": "it is not valid Unicode",
    "a/" * 512 + "b": "it is longer than 1,024 bytes",
}


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:40])
def test_a_hostile_name_is_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError) as caught:
        below(tmp_path, name)
    assert HOSTILE[name] in str(caught.value) and f"is not a path inside {tmp_path} (" in str(caught.value)
    with pytest.raises(SourceError, match="is not a path inside s3://bucket"):
        checked_name(name, "s3://bucket")


@pytest.mark.parametrize("name", [None, 5, ["a"], {"a": 1}])
def test_what_is_not_text_is_refused(name: Any) -> None:
    assert unsafe(name) == "it is not text"


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "data/BILLING_PERIOD=2026-07/20260801T000000Z-55.04/ml-cur2-00001.csv.gz",
        "2026-07-01T10:00:00 rank 0 (a+b@c).jsonl",
        ".hidden/..a/a../…/日本/é.txt",
        "NUL/con/~/$HOME/%2e%2e/-rf",
        "a/" * 511 + "b",
    ],
    ids=lambda name: ascii(name)[:40],
)
def test_a_plain_name_is_joined_as_it_is(tmp_path: Path, name: str) -> None:
    assert below(tmp_path, name) == tmp_path / name
    assert below(Path("relative"), name) == Path("relative") / name


def test_the_error_is_the_caller_s(tmp_path: Path) -> None:
    with pytest.raises(CheckError) as caught:
        below(tmp_path, "../x", error=CheckError, where="pack.zip: ", fix="have the pack sent again")
    assert str(caught.value) == (
        f"pack.zip: '../x' is not a path inside {tmp_path} (it has the part '..'); have the pack sent again."
    )


def test_a_part_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has a name of more than 255 bytes"):
        below(tmp_path, f"a/{'b' * 256}")


def test_no_link_is_followed_in_the_parts_of_a_name(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (root / "real").mkdir(parents=True)
    (root / "in").symlink_to("real")
    (root / "out").symlink_to(outside)
    (root / "real" / "deep").symlink_to("../../outside")
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to("nothing")
    for name in ("in", "in/x", "out", "out/x", "real/deep", "real/deep/x", "loop", "loop/x", "gone"):
        with pytest.raises(SourceError, match="is a link; rename or replace it"):
            below(root, name)
    for name in ("out", "out/x", "real/deep/x", "in/deep/x", "loop"):
        with pytest.raises(SourceError, match=f"leads outside {root}; rename or replace it"):
            below(root, name, inner_links=True)
    for name in ("in", "in/x", "gone"):
        assert below(root, name, inner_links=True) == root / name


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to("disk")
    assert below(tmp_path / "root", "a/b") == tmp_path / "root" / "a" / "b"
