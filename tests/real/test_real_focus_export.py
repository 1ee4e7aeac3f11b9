"""Real bills leave as FOCUS 1.2: conformant, and every invoice as billed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.bills import write_config
from support.cur_exports import legacy_export
from support.focus_rules import read, violations
from support.ledgers import FOCUS_TABLES, publish_tables

from pipelines.base.console import Console
from pipelines.config.settings import load_settings
from pipelines.exports.focus import export_focus

NAME = "Oct2018-WorkshopCUR-00001.snappy.parquet"
UNUSED = ("reservation_unused_amortized_upfront_fee_for_billing_period", "reservation_unused_recurring_fee")


@pytest.fixture(scope="module")
def october(shared_data: Path) -> pa.Table:
    return pq.read_table(shared_data / "billing" / "cur_workshop_2018" / NAME, columns=list(UNUSED))


@pytest.fixture(scope="module")
def exported(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workshop")
    content = (shared_data / "billing" / "cur_workshop_2018" / NAME).read_bytes()
    bill = legacy_export(root, {NAME: content}, name="WorkshopCUR", month="20181001-20181101")
    config = write_config(root, billing=bill)
    publish_tables(config, FOCUS_TABLES)
    export_focus(load_settings(config), None, root / "out", Console())
    return root / "out" / "focus-1.2" / "billing_period=2018-10"


@pytest.fixture(scope="module")
def rows(exported: Path) -> dict[str, duckdb.DuckDBPyRelation]:
    """The rows of each file by its name."""
    return {name: read(exported / name) for name in ("cost_and_usage.csv", "cost_and_usage.parquet")}


@pytest.mark.parametrize("name", ["cost_and_usage.csv", "cost_and_usage.parquet"])
def test_workshop_is_conformant(rows: dict[str, duckdb.DuckDBPyRelation], name: str) -> None:
    assert violations(rows[name]) == {}


def test_workshop_is_billed_and_amortized_as_its_file_states(
    rows: dict[str, duckdb.DuckDBPyRelation], october: pa.Table
) -> None:
    billed, used, unused, fees = (
        rows["cost_and_usage.csv"]
        .aggregate(
            "sum(BilledCost), sum(EffectiveCost) filter (where CommitmentDiscountStatus = 'Used'), "
            "sum(EffectiveCost) filter (where CommitmentDiscountStatus = 'Unused'), "
            "sum(BilledCost) filter (where ChargeCategory = 'Purchase' and CommitmentDiscountId is not null)"
        )
        .fetchall()[0]
    )
    # The data's README: 119,307 lines cost 4064.4831315379, of which 9 RIFee 149.78, and 232.25 of reservations used.
    assert round(billed, 6) == Decimal("4064.483132")
    assert (round(used, 2), round(fees, 2)) == (Decimal("232.25"), Decimal("149.78"))
    # Unused is what the file's two columns of waste come to.
    wasted = sum(pc.sum(october[name]).as_py() for name in UNUSED)
    assert abs(float(unused) - wasted) < 1e-6
