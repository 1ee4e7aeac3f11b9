"""The ways into a publication that docs/queries.md shows, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.small_company import Company

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^```python (\w+)\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("client", ["duckdb", "polars", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_client_reads_the_publication(
    built_company: Company, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The company's GPU run costs 2 hours at 55.04 USD and has no epoch; both clients that sum costs say 110.08."""
    exec(SNIPPETS[client].replace("WAREHOUSE", str(built_company.warehouse)), {})
    shown = capsys.readouterr().out
    assert ("gpu-1" if client == "duckdb" else "110.08") in shown


def test_every_client_is_tried() -> None:
    assert set(SNIPPETS) == {"duckdb", "polars", "spark"}
