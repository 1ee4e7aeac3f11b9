"""Bills whose lines do not come to what they charge: reported by charge type, and not published."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest
from support.bills import instance_hour
from support.ledgers import build_with
from support.spoiled import HOURS, MONTH, Ledger

from pipelines.models import command
from pipelines.models.build import Builder

# Each builds a ledger, often more than once.
pytestmark = pytest.mark.slow
LINE = HOURS[0]
OTHER = {**LINE, "line_item_resource_id": "i-2"}


def test_a_month_that_does_not_tie_to_its_bill_is_not_published(ledger: Ledger) -> None:
    """Two cents leave the ledger between its build and the reconciliation: a cent is let pass, no more."""
    done = []

    def spoil(builder: Builder, table: str) -> None:
        # Pieces are committed when the next table is made.
        done.append(table)
        if done[-2:-1] == ["core/fct_ledger_piece"]:
            (path,) = builder.lake.files("core/fct_ledger_piece")
            frame = pl.read_parquet(path)
            lost = pl.when(pl.int_range(pl.len()) == 0).then(Decimal("0.02")).otherwise(Decimal(0))
            cheaper = (pl.col("billed_cost_usd") - lost).cast(frame.schema["billed_cost_usd"])
            frame.with_columns(cheaper).write_parquet(path)

    ledger.restate(*HOURS, {**LINE, "line_item_resource_id": "i-2"})
    ledger.monkeypatch.setattr(command, "_refresh", lambda settings, *_: build_with(settings, spoil))
    error = ledger.refused(1)
    assert "mart_invoice_reconciliation_monthly: bill and ledger differ by more than a cent" in error
    # Seven hours at 55.04.
    assert "billed cost $385.28" in error and "ledger cost $385.26" in error
    assert "difference $0.02" in error and "by charge category Usage 0.02" in error


PLAN = {"savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::000011112222:savingsplan/sp-1"}


def charge(kind: str, cost: str, **more: str) -> dict[str, str]:
    """A line that runs nothing, in the hour of LINE."""
    return {**LINE, **{"line_item_line_item_type": kind, "line_item_unblended_cost": cost, **more}}


def plan_hour(negated: str, total: str = "40.00") -> list[dict[str, str]]:
    """An hour the plan covers at 30.00, its negation, and the fee of the hour."""
    covered = charge("SavingsPlanCoveredUsage", "55.04", savings_plan_savings_plan_effective_cost="30.00", **PLAN)
    commitment = {"savings_plan_total_commitment_to_date": total, "savings_plan_used_commitment": "30.00"}
    return [
        {**covered, "line_item_resource_id": "i-2"},
        charge("SavingsPlanNegation", negated, line_item_resource_id="", **PLAN),
        charge("SavingsPlanRecurringFee", "40.00", line_item_resource_id="", **commitment, **PLAN),
    ]


LAST_HOUR = instance_hour(f"{MONTH}-31T22", "i-1", "p5.48xlarge", "55.04")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param(
            plan_hour("-50.00"),
            ["left $5.04, right $0.00, difference $5.04", "SavingsPlanCoveredUsage 55.04, SavingsPlanNegation -50.00"],
            id="a negation too small",
        ),
        # The net column has 10 % off one hour, 5.504; the discount row has 9.
        pytest.param(
            [
                {**OTHER, "line_item_net_unblended_cost": "49.536"},
                charge("EdpDiscount", "-9.00"),
            ],
            ["difference $3.50", "EdpDiscount 9.00, Usage -5.50"],
            id="a discount that is not the one in the net column",
        ),
        # 30 used and 15 unused of a fee of 40.
        pytest.param(
            [*plan_hour("-55.04", total="45.00"), LAST_HOUR],
            ["difference \u2212$5.00", "SavingsPlanCoveredUsage -30.00, SavingsPlanRecurringFee 25.00"],
            id="a fee that does not add up",
        ),
    ],
)
def test_a_closed_bill_that_does_not_tie_is_reported_by_charge_type(
    ledger: Ledger, lines: list, message: list[str]
) -> None:
    ledger.restate(*HOURS, *lines)
    refused = ledger.refused(1)
    assert "detail_bill_identity_monthly: a closed bill does not tie fails for 1 row, for example " in refused
    assert "payer account 000011112222, billing month 2026-07," in refused
    difference, by_charge_type = message
    assert f"{difference}, " in refused and f", by charge type {by_charge_type};" in refused


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        pytest.param([{**line, "bill_invoice_id": ""} for line in plan_hour("-50.00")], "open", id="open"),
        # A bill that lacks every negation, as an export of one account may, counts covered usage as it is written.
        pytest.param(plan_hour("-50.00")[::2], "incomplete", id="without any negation"),
    ],
)
def test_a_bill_that_is_open_or_in_part_is_not_held_to_tie(ledger: Ledger, lines: list, status: str) -> None:
    ledger.restate(*HOURS, *lines)
    assert ledger.run("build").code == 0
    sql = "select status from detail_bill_identity_monthly where identity = 3"
    assert ledger.run("query", sql, "--csv").out.splitlines()[1:] == [status]


def test_a_tolerance_lets_a_bill_through_that_aws_itself_got_wrong(ledger: Ledger) -> None:
    ledger.restate(*HOURS, *plan_hour("-50.00"))
    assert "does not tie" in ledger.refused(1)
    text = ledger.config.read_text()
    ledger.config.write_text(f"{text}\n[policy]\nidentity_tolerance_usd = 5.04\n")
    assert ledger.run("build").code == 0
    sql = "select status, cast(difference_usd as varchar) from detail_bill_identity_monthly where identity = 3"
    assert ledger.run("query", sql, "--csv").out.splitlines()[1:] == ["holds,5.0400000000"]
