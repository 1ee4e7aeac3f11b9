from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.spoiled import Ledger, write_ledger


@pytest.fixture
def tables(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """What a ledger has of all tables, with what they rest on; none stand for every one, as `make test-slow` has."""
    return () if request.node.get_closest_marker("slow") else ("mart_run_cost",)


@pytest.fixture
def published(once: Callable[[str, Callable[[Path], object]], Path], tables: tuple[str, ...]) -> Path:
    """The good ledger, built once for the whole run."""
    return once("-".join(("ledger", *tables)), lambda root: write_ledger(root, tables))


@pytest.fixture
def ledger(
    published: Path,
    tables: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Ledger:
    """A copy of the good ledger to spoil."""
    root = tmp_path / "ledger"
    shutil.copytree(published, root)
    untouched = shutil.copy(root / "trainledger.toml", root / "untouched.toml")
    ledger = Ledger(root, Path(untouched), capsys, monkeypatch)
    return ledger.builds(*tables) if tables else ledger
