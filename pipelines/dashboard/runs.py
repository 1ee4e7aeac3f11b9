"""The list of runs, filtered, sorted and paged by the engine; and one run's page."""

from collections.abc import Mapping
from typing import Any

from pipelines.base.errors import shown
from pipelines.dashboard import query as parameters
from pipelines.dashboard.query import NotFoundError
from pipelines.dashboard.reader import Volume

PAGE_ROWS, MOST_ROWS = 50, 2000
BASES = {"effective": "", "list": "list_", "billed": "billed_"}
# What a column is sorted by, and whether the largest comes first.
SORTS = {
    "run": ("run_id", False),
    "workload": ("model", False),
    "team": ("team", False),
    "silicon": ("accelerator_family || ' ' || instance_type", False),
    "status": ("status", False),
    "started": ("started_at", True),
    "hours": ("accelerator_hours", True),
    "cost": ("cost_usd", True),
    "epoch": ("per_epoch_usd", True),
    "checkpoint": ("per_checkpoint_usd", True),
    "tokens": ("per_million_tokens_usd", True),
    "wasted": ("wasted_cost_usd", True),
    "goodput": ("goodput_ratio", True),
}
FILTERS = ("team", "workload", "status", "silicon", "month")


def runs_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    """One page of the requested runs."""
    page_rows = parameters.number(request, "rows", PAGE_ROWS, MOST_ROWS)
    known = volume.page("runs_known")
    choices = {name: [row["word"] for row in known["choices"] if row["filter"] == name] for name in FILTERS}
    chosen = {name: parameters.choice(request, name, choices[name]) for name in FILTERS}
    chosen["q"] = parameters.text(request, "q")
    basis = parameters.choice(request, "basis", BASES, "effective")
    sort = parameters.choice(request, "sort", SORTS, "cost")
    expression, is_largest_first = SORTS[sort]
    way = parameters.choice(request, "way", ("up", "down"), "down" if is_largest_first else "up")
    parts = {
        "basis": f"{basis}_",
        "unit": BASES[basis],
        "order": f"{expression} {'desc' if way == 'down' else 'asc'} nulls last",
    }
    values = {**chosen, "q": chosen["q"].lower(), "limit": page_rows}
    counted = volume.page("runs_counted", values, **parts)
    count = sum(row["run_count"] for row in counted["totals"])
    pages = max(1, -(-count // page_rows))
    at = parameters.number(request, "page", 1, pages)
    context = volume.page("runs", {**values, "offset": (at - 1) * page_rows}, **parts)
    kept = {**chosen, "basis": basis if basis != "effective" else ""}
    return {
        **context,
        "totals": counted["totals"],
        "choices": choices,
        "chosen": chosen,
        "basis": basis,
        "sort": sort,
        "way": way,
        "at": at,
        "pages": pages,
        "count": count,
        "first": (at - 1) * page_rows + 1,
        "kept": {name: value for name, value in kept.items() if value},
        "sorts": SORTS,
        "most_rows": MOST_ROWS,
    }


def run_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    """One run. NotFoundError for an unknown run."""
    run_id = request.get("id", "")
    context = volume.page("run", {"id": run_id})
    if not context["run"]:
        raise NotFoundError(f"There is no run {shown(run_id)} in this publication; choose one of the list of runs.")
    return context
