"""A delivery that is replaced by an earlier one, and a manifest that disappears: published, and reported in dollars."""

from __future__ import annotations

from typing import Any

import pytest
from support.bills import instance_hour, write_export
from support.spoiled import HOURS, MONTH, Ledger

# Six hours at 55.04 are 330.24; a seventh makes 385.28.
SEVENTH = instance_hour(f"{MONTH}-01T06", "i-1", "p5.48xlarge", "55.04")


@pytest.fixture
def tables() -> tuple[str, ...]:
    return ("mart_restatement",)


def warned(ledger: Ledger, check: str) -> list[dict[str, Any]]:
    """The rows of a check of fct_restatement in the newest publication, after a build."""
    (found,) = (c for c in ledger.checks() if (c["table"], c["check"]) == ("core/fct_restatement", check))
    return found["sample"]


def test_a_delivery_rolled_back_to_an_earlier_one(ledger: Ledger) -> None:
    def deliver(execution: str, *more: dict[str, str]) -> list[dict[str, Any]]:
        write_export(ledger.root, {MONTH: [*HOURS, *more]}, execution=execution)
        return warned(ledger, "delivery_rolled_back_to_an_earlier_one")

    # The ledger was published from a delivery of the id first.
    assert deliver("second", SEVENTH) == []
    (row,) = deliver("first")
    assert (row["delivery_id"], row["replaced_delivery_id"]) == ("first", "second")
    assert float(row["moved_billed_cost_usd"]) == -55.04
    figures = "delivery_no, delivery_id, cast(billed_cost_usd as varchar)"
    answer = ledger.run("query", f"select {figures} from mart_restatement where delivery_no > 1 order by 1", "--csv")
    assert answer.out.splitlines()[1:] == ["2,second,385.2800000000", "3,first,330.2400000000"]
    # The next delivery goes on from there.
    assert deliver("third", SEVENTH) == []


def test_a_manifest_that_disappears(ledger: Ledger) -> None:
    name = "delivery_whose_manifest_is_gone"
    ledger.builds("fct_restatement")
    write_export(ledger.root, {MONTH: HOURS, "2026-06": []}, execution="with june")
    assert warned(ledger, name) == []
    kept = ledger.manifest.read_bytes()
    ledger.manifest.unlink()
    (row,) = warned(ledger, name)
    assert (row["billing_month"], float(row["billed_cost_usd"])) == (f"{MONTH}-01", 330.24)
    ledger.manifest.write_bytes(kept)
    assert warned(ledger, name) == []
