"""The small company whose packs these tests read, and a pack of it with its bills."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.packs import pack_of
from support.small_company import Company

from pipelines.config.settings import Warehouse


@pytest.fixture(scope="session")
def company(built_company: Company, tmp_path_factory: pytest.TempPathFactory) -> Company:
    """The GPU run costs 2 hours at 55.04 USD, 110.08; the Trainium run 4 hours at 21.50. A secret is configured."""
    copied = built_company.copy(tmp_path_factory.mktemp("packed"))
    secret = 'endpoint_url = "https://key:hunter2@s3.acme.dev"\nprofile = "hunter2"\n'
    copied.config.write_text(copied.config.read_text().replace("[[billing]]\n", f"[[billing]]\n{secret}"))
    return copied


@pytest.fixture(scope="session")
def pack(company: Company) -> Path:
    return pack_of(company, "bundle.zip", bundle=True)


@pytest.fixture(autouse=True)
def rebuilt_as_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passed no gate when it was published, as in all tests, passes none when `verify` builds it again."""
    monkeypatch.setattr("pipelines.evidence.rebuild.WarehouseSettings", partial(Warehouse, gate="none", threads=1))
