"""The golden hour as FOCUS 1.2 charges, compared with the figures derived by hand in its README."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest
from support.focus_rules import read, violations
from support.ledgers import FOCUS_TABLES, publish_tables
from support.stories import agrees, build_story

from pipelines.base.console import Console
from pipelines.exports.focus import export_focus

STORY = Path(__file__).parent / "golden_hour"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("golden_focus")
    built = build_story(STORY, root, FOCUS_TABLES, publish_tables)
    export_focus(built.warehouse.settings, None, root / "out", Console())
    return root / "out" / "focus-1.2" / "billing_period=2026-07"


@pytest.mark.parametrize("name", ["cost_and_usage.csv", "cost_and_usage.parquet"])
def test_charges_are_as_derived_by_hand(exported: Path, name: str) -> None:
    assert violations(exported / name) == {}
    with duckdb.connect() as connection:
        connection.register("charge", read(exported / name).to_arrow_table())
        with (STORY / "focus_expected.csv").open(encoding="utf-8", newline="") as file:
            figures = list(csv.DictReader(file))
        assert len(figures) > 20
        wrong = []
        for figure in figures:
            sql = f"select {figure['figure']} from charge where {figure['where'] or 'true'}"
            values = connection.sql(sql).fetchall()
            # Doubles of the Parquet file add up to the last digit or two.
            if len(values) != 1 or not agrees(values[0][0], figure["expected"], "1e-9"):
                wrong.append(f"{sql} is {values}, expected {figure['expected'] or 'null'}: {figure['derivation']}")
        assert wrong == []
