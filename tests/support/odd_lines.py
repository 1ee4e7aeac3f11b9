"""One line of a kind, and what the models make of a bill that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from support.lab import Lab
from support.random_ledgers import MONTH, hour, tracker

JOB = "arn:aws:sagemaker:us-west-2:000033334444:training-job/j"


def line(usage: str, resource: str, operation: str, product: str, amount: str = "1", **more: str) -> dict[str, str]:
    """An hour's line of 10 dollars."""
    return {
        **hour(0),
        "line_item_usage_type": usage,
        "line_item_operation": operation,
        "line_item_product_code": product,
        "line_item_resource_id": resource,
        "line_item_usage_amount": amount,
        "line_item_unblended_cost": "10",
        **more,
    }


def ask(sql: str, *names: str, bill: Sequence[Mapping[str, str]], **recorded: Any) -> list[tuple]:
    """The rows of `sql` over the models `names`; `recorded` are stays of runs and reservations."""
    with Lab({MONTH: bill}, tracker(recorded.get("stays", ())), recorded.get("reservations", ())) as lab:
        return lab.ask(sql, *names)
