"""Laws of the FOCUS export, for any bill, through the real SQL."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import polars as pl
import pytest
from hypothesis import example, given, settings
from support.focus_rules import COLUMNS, violations
from support.lab import Lab
from support.random_ledgers import MONTH, VOLUME, any_bill, hour

pytestmark = pytest.mark.slow

FEW = settings(max_examples=15, deadline=None, derandomize=True, database=None)
CHARGES, LINES = "stg_aws__focus_charge", "stg_aws__line_item"


NO_COST = hour(0) | {
    "line_item_line_item_type": "DiscountedUsage",
    "line_item_operation": "EKSPod-EC2",
    "line_item_usage_type": "USW2-EBS:VolumeUsage.gp3",
    "line_item_resource_id": VOLUME,
    "line_item_usage_amount": "1",
    "line_item_unblended_cost": "0",
}


# A share of a pod whose reserved cost the bill leaves open, and one that costs nothing.
@example([NO_COST])
@example([NO_COST | {"line_item_line_item_type": "Usage"}])
@FEW
@given(any_bill)
def test_no_money_is_lost_on_the_way_and_no_rule_is_broken(bill: list[dict[str, str]]) -> None:
    with Lab({MONTH: bill}, {}) as lab:
        charged = lab.ask(
            'select "BillingAccountId", "InvoiceId", sum("BilledCost"), coalesce(sum("EffectiveCost"), 0), '
            'sum("EffectiveCost") filter (where "ChargeCategory" = \'Credit\'), count(*) - count("EffectiveCost") '
            f"from {CHARGES} group by all",
            CHARGES,
        )
        ledger = lab.ask(
            "select payer_account_id, invoice_id, sum(billed_cost_usd), coalesce(sum(effective_cost_usd), 0), "
            f"count(*) - count(effective_cost_usd) from {LINES} group by all",
            LINES,
        )
        # Our effective cost is before credits, FOCUS counts them (design 3.1).
        found = {row[:2]: (row[2], row[3] - (row[4] or 0), row[5]) for row in charged}
        nothing = (Decimal(0), Decimal(0), 0)
        assert {row[:2]: found.get(row[:2], nothing) for row in ledger} == {row[:2]: row[2:] for row in ledger}
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        rows = pl.DataFrame(lab.ask(f"select {names} from {CHARGES}", CHARGES), schema=list(COLUMNS), orient="row")
        with duckdb.connect() as connection:
            connection.register("rows", rows.to_arrow())
            # What the bill does not state is null also where FOCUS allows none (docs/focus-export.md).
            known = connection.sql('select * from rows where "EffectiveCost" is not null')
            # Shares of pods that cost nothing are no row of FOCUS, so a bill of them has none.
            assert rows.is_empty() or violations(known) == {}
