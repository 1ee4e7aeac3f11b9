"""One row per workload, currency and rule of leaning, with the arithmetic and the result: what each says, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipelines.analysis.recommendation import RESULT, SPIKE, Finding, Rule, rules_of
from pipelines.transforms import workload_case
from pipelines.transforms.port_case import CURRENCY
from pipelines.transforms.workload_case import WorkloadCase, workload_cases

INPUTS = (*workload_case.INPUTS, "ref_lean_rule", "ref_lean_condition")
_FINDINGS = {True: "holds", False: "does not hold", None: "unknown"}
_SCHEMA = {
    **dict.fromkeys(("workload_id", "billing_currency", "rule", "rule_kind"), pl.String),
    "asked_no": pl.Int64,
    **dict.fromkeys(("situation", "lean", "finding", "decided_by", "lean_reason", "missing_inputs"), pl.String),
}


def build(ref_lean_rule: pl.DataFrame, ref_lean_condition: pl.DataFrame, **inputs: pl.DataFrame) -> pl.DataFrame:
    """Every rule for every workload, in the order in which they are asked; the result last."""
    rules = rules_of(
        ref_lean_rule.with_columns(pl.col("rule_no").cast(pl.Int64)).iter_rows(named=True),
        ref_lean_condition.with_columns(pl.col("alternative_no", "condition_no").cast(pl.Int64)).iter_rows(named=True),
    )
    rows = [row for case in workload_cases(**inputs) for row in _rows(case, rules)]
    known = {row["workload_id"] for row in rows}
    stated = inputs["declared_workload"]["workload_id"].sort()
    rows += [_unrun(workload_id) for workload_id in stated if workload_id not in known]
    return pl.DataFrame(rows, schema=_SCHEMA)


def _rows(case: WorkloadCase, rules: list[Rule]) -> Iterator[dict[str, Any]]:
    findings, decision = case.lean(rules)
    situations = {rule.name: rule.situation for rule in rules}
    key = {"workload_id": case.workload_id, "billing_currency": case.currency}
    for number, found in enumerate(findings, start=1):
        yield key | _row(found, number, situations)
    yield key | {
        "rule": RESULT,
        "rule_kind": RESULT,
        "asked_no": len(findings) + 1,
        "lean": decision.lean,
        "finding": _FINDINGS[True],
        "decided_by": decision.decided_by,
        "lean_reason": decision.reason,
        "missing_inputs": ", ".join(decision.lacks) or None,
    }


def _unrun(workload_id: str) -> dict[str, Any]:
    """What people say of a workload that the bill knows nothing of."""
    return {
        "workload_id": workload_id,
        "billing_currency": CURRENCY,
        **{"rule": RESULT, "rule_kind": RESULT, "asked_no": 1, "lean": SPIKE, "finding": _FINDINGS[True]},
        "decided_by": "no run",
        "lean_reason": "no run on GPU or Trainium that is billed is of this workload_id: is it spelt as runs spell it?",
    }


def _row(found: Finding, number: int, situations: dict[str, str]) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "rule_kind": found.kind,
        "asked_no": number,
        "situation": situations.get(found.rule),
        "lean": found.lean,
        "finding": _FINDINGS[found.holds],
        "lean_reason": found.said,
        "missing_inputs": ", ".join(found.lacks) or None,
    }
