"""What is installed is what was locked, no secret is an argument, and the threat model names tests that exist."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.main import get_command

from pipelines.cli import app

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")


def test_every_locked_library_has_the_hashes_of_its_files() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    assert len(lock) > 100
    assert [line for line in lock if not re.search(r"==\S+.* --hash=sha256:[0-9a-f]{64}", line)] == []


@pytest.mark.skipif(not UV.exists(), reason="uv is installed by make")
@pytest.mark.parametrize("is_locked_file", [True, False])
def test_a_file_that_is_not_the_locked_one_is_not_installed(tmp_path: Path, is_locked_file: bool) -> None:
    """By the options of every install of the Makefile, for a library that another one asks for without a hash."""
    (options,) = re.findall(
        r"^INSTALL := \S+ (pip install .*) --python$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert "-c requirements.lock -b requirements.lock" in options
    wheel = tmp_path / "held-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("held-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: held\nVersion: 1.0\n")
        archive.writestr("held-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("held-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest() if is_locked_file else "0" * 64
    (tmp_path / "requirements.lock").write_text(f"held==1.0 \\\n    --hash=sha256:{digest}\n")
    place = ("--target", "site", "--no-index", "--find-links", ".", "--no-cache", "--python", sys.executable)
    run = subprocess.run([UV, *options.split(), *place, "held"], cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode == 0) is is_locked_file, run.stderr
    assert ("Hash mismatch for `held==1.0`" in run.stderr) is not is_locked_file
    assert (tmp_path / "site" / "held-1.0.dist-info").is_dir() is is_locked_file


def test_no_command_takes_a_secret_as_an_argument() -> None:
    """Every user of a machine can read the arguments of its processes. `--sign` takes the path of a key."""
    words = re.compile("pass|secret|token|webhook|credential|key", re.IGNORECASE)
    commands = [get_command(app)]
    options: list[str] = []
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        options += [option for one in command.params for option in one.opts]
    assert "--sign" in options and len(options) > 50
    assert [option for option in options if words.search(option)] == []


def test_every_threat_names_the_tests_that_hold_it() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| ") and not row.startswith("| Who |")]
    named = {row: re.findall(r"`([\w/]+)::(\w+)`", row) for row in rows}
    assert len(rows) > 15 and [row for row, tests in named.items() if not tests] == []
    for file, test in (one for tests in named.values() for one in tests):
        assert f"def {test}(" in (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8"), test
