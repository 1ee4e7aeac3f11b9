"""Where the real bills lie."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def billing(shared_data: Path) -> Path:
    return shared_data / "billing"
