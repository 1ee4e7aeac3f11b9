"""The small company whose packs these tests read, and a pack of it with its bills."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.packs import pack_of
from support.small_company import Company


@pytest.fixture(scope="session")
def company(built_company: Company, tmp_path_factory: pytest.TempPathFactory) -> Company:
    """The GPU run costs 2 hours at 55.04 USD, 110.08; the Trainium run 4 hours at 21.50."""
    return built_company.copy(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="session")
def pack(company: Company) -> Path:
    return pack_of(company, "bundle.zip", bundle=True)
