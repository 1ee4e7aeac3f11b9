"""The newest DuckDB 2.x of the package index, with our own tests: docs/decisions/0002 has the plan."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# Versions that lose rows; pyproject.toml excludes each.
LOSING_ROWS = {"2.0.0"}
QUIET = ("-p", "no:cacheprovider")
STORIES = "golden_hour or restated_month or two_currencies or price_cut or four_pods"


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the newest 2.x alone, to be found before the installed one."""
    folder = tmp_path_factory.mktemp("duckdb")
    uv = Path(sys.executable).with_name("uv")
    install = [uv, "pip", "install", "--no-deps", "--python", sys.executable, "--target", folder, "duckdb>=2,<3"]
    found = subprocess.run(install, capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"DuckDB 2.x cannot be installed: {found.stderr.strip().splitlines()[-1]}")
    return folder


def with_newest(newest: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(newest), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


def test_golden_stories_have_the_same_figures(newest: Path) -> None:
    stories = with_newest(newest, "-m", "pytest", "-q", *QUIET, "tests/golden/test_stories.py", "-k", STORIES)
    assert stories.returncode == 0, stories.stdout[-4000:]


def test_rows_are_lost_by_known_versions_alone(newest: Path) -> None:
    version = with_newest(newest, "-c", "import duckdb; print(duckdb.__version__)").stdout.strip()
    assert version.startswith("2.")
    trap = with_newest(newest, "-m", "pytest", "-q", *QUIET, "tests/engines/test_duckdb_trap.py")
    assert (trap.returncode != 0) == (version in LOSING_ROWS), trap.stdout[-4000:]
    excluded = {f"!={one}" for one in LOSING_ROWS}
    assert all(one in (ROOT / "pyproject.toml").read_text(encoding="utf-8") for one in excluded)
