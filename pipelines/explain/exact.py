"""An explanation for programs, as JSON: every line, nothing rounded."""

from __future__ import annotations

import json
from typing import Any

from pipelines.explain.lines import Explanation
from pipelines.explain.query import RECONCILIATION


def as_json(explanation: Explanation) -> str:
    """Everything, every line, amounts as exact text."""
    question, published = explanation.question, explanation.publication
    levels = [
        {"title": level.title, "rows": explanation.level(level).to_dicts()} for level in question.levels if level.title
    ]
    if question.mart == RECONCILIATION:
        types = explanation.by_charge_type().to_dicts()
        levels.insert(0, {"title": "Invoiced and in the ledger, by charge type", "rows": types})
    document = {
        "question": question.title,
        "publication": published.number,
        "published_at": published.published_at,
        "deliveries": explanation.deliveries,
        "currency": explanation.currency,
        "mart": question.mart,
        "mart_rows": question.rows.to_dicts(),
        "levels": levels,
        "total": explanation.total(),
        "lines": explanation.lines().to_dicts(),
    }
    return json.dumps(document, default=_plain, indent=1) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else format(value, "f")
