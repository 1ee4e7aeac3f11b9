"""Pages and reports select, filter and sort rows of the public tables; a sum that no table has is named in sums.yml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.base import resources
from pipelines.base.sql import tables_in
from pipelines.models.catalog import load_catalog
from pipelines.models.expressions import load_expressions
from pipelines.present.render import SUMS

QUERIES = sorted([*resources.DASHBOARDS.glob("*/report.yml"), *(resources.DASHBOARDS / "app").glob("*.yml")])
SHARED = [path for path in resources.DASHBOARDS.glob("*.yml") if path.stem not in ("charts", "sums")]
TEMPLATES = sorted(resources.DASHBOARDS.rglob("*.j2"))
# Adds up, joins or divides; max and count only choose and number rows.
COMPUTES = re.compile(r"\b(?:sum|avg|known_sum|ratio)\s*\(|\bjoin\b|\s/\s|\bunion\b(?! all)", re.IGNORECASE)
# In the expressions of a template: the filter that adds up, a division, amounts added to each other.
AMOUNT = r"_(?:usd|hours|ratio)"
TEMPLATE_COMPUTES = re.compile(rf"\|\s*sum\b|\s//?\s|{AMOUNT}\s*[-+*]\s|\s[-+*]\s*\w+\.\w+{AMOUNT}\b")


def named(path: Path) -> str:
    return str(path.relative_to(resources.DASHBOARDS))


def written(path: Path) -> dict[str, Any]:
    plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    queries = plan["queries"] if path.name == "report.yml" else plan
    return {name: query for name, query in queries.items() if name != "include"}


@pytest.mark.parametrize("path", [*QUERIES, *SHARED], ids=named)
def test_a_query_reads_one_public_table_and_computes_nothing(path: Path) -> None:
    public = {model.name for model in load_catalog().public}
    calls = re.compile(rf"\b(?:{'|'.join(load_expressions())})\s*\(")
    for name, query in written(path).items():
        sql = query if isinstance(query, str) else query.get("where", "")
        assert not COMPUTES.search(sql), f"{name} computes; let a mart or dashboards/sums.yml have the figure"
        assert not calls.search(sql), f"{name} calls a metric; let a mart have the figure"
        if isinstance(query, str):
            plain = re.sub(r"\{\w+\}", "cost_usd", sql.replace("{month}", "date '2026-07-01'").replace("{basis}", ""))
            plain = plain.replace("cost_usdcost", "cost")
            tables = set(tables_in(re.sub(r"\$\w+", "'x'", plain)))
            assert len(tables) == 1 and tables <= public, (name, tables)
        else:
            assert query["sum"] in SUMS, name


@pytest.mark.parametrize("path", TEMPLATES, ids=named)
def test_a_template_computes_nothing(path: Path) -> None:
    for expression in re.findall(r"\{[{%].*?[%}]\}", path.read_text(encoding="utf-8"), re.DOTALL):
        outside_text = re.sub(r"'[^']*'", "''", expression)
        assert not TEMPLATE_COMPUTES.search(outside_text), expression


def test_only_one_file_names_the_buckets() -> None:
    """A list of buckets in code, a query, a template or a contract is the reviewed list itself."""
    folders = [(resources.DASHBOARDS, "*.*"), (resources.EXPECTATIONS, "*.yml"), (resources.PACKAGE, "*.py")]
    pair = re.compile(r"\bunattributed\b\W{1,6}\bcapacity_unused\b|\bcapacity_unused\b\W{1,6}\bcommitment_unused\b")
    found = [path for folder, kind in folders for path in folder.rglob(kind) if pair.search(path.read_text("utf-8"))]
    assert not found
