"""A build after a change of code: what the code makes is made again, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.small_company import Company

from pipelines.base import parse_cache, resources
from pipelines.ingest.billing.columns import CUR
from pipelines.models.catalog import RAW_TABLES, load_catalog

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the product whose code may be changed, and of what is known of its files by now."""
    tree = tmp_path.resolve() / "tree"
    for part in ("pipelines", "sql", "expectations", "dashboards"):
        shutil.copytree(ROOT / part, tree / part)
    load_catalog()
    parsed = parse_cache._path()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        patch.setattr(resources, "ROOT", tree)
        its_own = parse_cache._path()
    assert its_own
    if parsed and parsed.is_file():
        its_own.parent.mkdir(parents=True)
        shutil.copyfile(parsed, its_own)
    return tree


def edit(tree: Path, *modules: str) -> None:
    for module in modules:
        path = tree / "pipelines" / module
        path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = True\n", encoding="utf-8")


def build(tree: Path, company: Company) -> str:
    """What `trainledger build` prints, run from the code of `tree`."""
    run = subprocess.run(
        [sys.executable, "-m", "pipelines", "build", "--config", company.config],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def made_from(company: Company) -> dict[str, set[str]]:
    """By table of the newest publication, the digests of what its files were made from."""
    record = json.loads(max(company.warehouse.glob("publications/*.json")).read_text())
    tables = record["tables"] | record["raw"]
    return {key: {name.partition("-")[0] for name in table["files"]} for key, table in tables.items()}


def rebuilt(before: dict[str, set[str]], after: dict[str, set[str]]) -> set[str]:
    return {key for key in after if after[key] != before[key]}


def test_a_change_of_code_rebuilds_just_what_it_makes(built_company: Company, tmp_path: Path, tree: Path) -> None:
    company = built_company.copy(tmp_path / "company")
    first = made_from(company)
    # The same code in another folder is the same code.
    assert build(tree, company).startswith("Nothing changed since publication 1")

    edit(tree, "analysis/commitment_baseline.py")
    assert "Published 2: " in build(tree, company)
    second = made_from(company)
    assert rebuilt(first, second) == {"marts/mart_commitment_recommendation"}

    # The code that reads events, and the code that converts a csv; what they give is the same as before.
    edit(tree, "ingest/runs/event.py", "ingest/billing/values.py")
    assert "Published 3: " in build(tree, company)
    third = made_from(company)
    catalog = load_catalog()
    of_bills = {model.key for model in catalog.ordered if model.stored and CUR.table in catalog.resting_on(model)}
    assert rebuilt(second, third) == {*(f"raw/{name}" for name in RAW_TABLES), *of_bills}
    deliveries = [json.loads(path.read_text()) for path in company.warehouse.glob("raw/*/*/*/delivery.json")]
    assert len(deliveries) == 2 and len({record["converter"] for record in deliveries}) == 1
