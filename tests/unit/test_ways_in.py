"""The ways into a publication that docs/queries.md and the notebook show, run as they stand there."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from support.small_company import Company

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "queries.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^```python (\w+)\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("client", ["duckdb", "polars", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_client_reads_the_publication(
    built_company: Company, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The company's GPU run costs 2 hours at 55.04 USD and has no epoch; both clients that sum costs show 110.08."""
    exec(SNIPPETS[client].replace("WAREHOUSE", str(built_company.warehouse)), {})
    shown = capsys.readouterr().out
    assert ("gpu-1" if client == "duckdb" else "110.08") in shown


def test_the_notebook_reads_the_publication(built_company: Company) -> None:
    """Its ledger and its bill are the same sum, and no run of the company has an epoch to divide by."""
    cells = json.loads((DOCS / "marts.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    found: dict = {}
    exec(code.replace("trainledger-demo/warehouse", str(built_company.warehouse)), found)
    assert found["runs"].filter(run_id="gpu-1")["effective_cost_usd"].item() == Decimal("110.08")
    assert found["ledger"]["billed_cost_usd"].sum() == found["bill"]["billed_cost_usd"].sum()


def test_a_run_that_is_partly_billed_is_in_no_cost_per_epoch() -> None:
    """Of two runs of 10 hours at 21.50 USD and an epoch each, the bill has 10 hours and 2: an epoch costs 215 USD."""
    (question,) = re.findall(r"^### 2\. .+?\n+```sql\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    runs = """
        create table mart_run_cost as
        select 'w' as workload_id, 'trainium' as accelerator_family, 'USD' as billing_currency, 'completed' as status,
            1 as epoch_completed_count, cost as effective_cost_usd, per_epoch as cost_per_epoch_usd
        from (values (215.00, 215.00), (43.00, null)) as run(cost, per_epoch)
    """
    with duckdb.connect() as marts:
        marts.execute(runs)
        assert marts.sql(question).fetchall() == [("w", "trainium", "USD", 1, 215.0)]


def test_a_panel_over_time_has_the_dollars_of_each_bucket(built_company: Company) -> None:
    (panel,) = re.findall(r"```sql\n(.*?)```", (DOCS / "bi.md").read_text(encoding="utf-8"), re.DOTALL)
    with duckdb.connect(built_company.warehouse / "marts.duckdb", read_only=True) as marts:
        frame = marts.sql(panel).pl()
    assert frame.columns == ["time", "bucket", "billed_cost_usd"] and "run" in frame["bucket"]


def test_every_client_is_tried() -> None:
    assert set(SNIPPETS) == {"duckdb", "polars", "spark"}
