from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.spoiled import Ledger, write_ledger


@pytest.fixture(scope="session")
def published(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The good ledger, built once for the whole run."""
    return once("ledger", write_ledger)


@pytest.fixture
def ledger(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ledger:
    """A copy of the good ledger to spoil."""
    root = tmp_path / "ledger"
    shutil.copytree(published, root)
    untouched = shutil.copy(root / "trainledger.toml", root / "untouched.toml")
    return Ledger(root, Path(untouched), capsys, monkeypatch)
