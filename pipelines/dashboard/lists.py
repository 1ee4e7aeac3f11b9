"""The list of runs, filtered, sorted and paged by the engine, one run's page, and the ledger of a month, filtered next
to what its filters cost in every month."""

from collections.abc import Mapping
from typing import Any

from pipelines.base.errors import shown
from pipelines.dashboard import query as parameters
from pipelines.dashboard.query import NotFoundError
from pipelines.dashboard.reader import Volume
from pipelines.present.buckets import LABELS

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
RUN_FILTERS = ("team", "workload", "status", "silicon", "month")
# What each filter compares, in its order on the page.
FILTERS = {
    "bucket": "bucket",
    "family": "accelerator_family",
    "account": "account_id",
    "team": "team",
    "service": "service",
    "region": "coalesce(nullif(region_id, ''), 'no region')",
    "owner": "coalesce(nullif(tag_owner, ''), 'no owner')",
}
# `explain` has these too; the bill lines of the others are a larger sum.
EXPLAINED = ("bucket", "family", "account", "service")


def runs_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    page_rows = parameters.number(request, "rows", PAGE_ROWS, MOST_ROWS)
    known = volume.page("runs_known")
    choices = {name: [row["word"] for row in known["choices"] if row["filter"] == name] for name in RUN_FILTERS}
    chosen = {name: parameters.choice(request, name, choices[name]) for name in RUN_FILTERS}
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


def ledger_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    month, months = chosen_month(volume, request)
    choices = {name: _known(volume, name) if months else [] for name in FILTERS}
    # A bucket that no line is in yet is empty, not unknown: the overview links to each.
    choices["bucket"] = list(LABELS)
    chosen = {name: parameters.choice(request, name, choices[name]) for name in FILTERS}
    kept = {name: word for name, word in chosen.items() if word}
    where = " and ".join(f"{FILTERS[name]} = ${name}" for name in kept) or "true"
    context = volume.page("ledger", {"month": month, **kept}, chosen=where)
    return {
        **context,
        "month": month,
        "months": months,
        "choices": choices,
        "chosen": chosen,
        "kept": kept,
        "is_explained": kept.keys() <= set(EXPLAINED),
    }


def chosen_month(volume: Volume, request: Mapping[str, str]) -> tuple[str, list[str]]:
    """The requested billing month, else the newest, and all months; as YYYY-MM."""
    mart = "mart_cost_ledger_daily"
    if mart not in {key.rpartition("/")[2] for key in volume.published.tables}:
        return "", []
    rows = volume.keep("months", lambda: volume.rows(f"select distinct billing_month from {mart} order by 1 desc"))
    months = [f"{row['billing_month']:%Y-%m}" for row in rows]
    return parameters.choice(request, "month", months, months[0] if months else ""), months


def _known(volume: Volume, name: str) -> list[str]:
    sql = f"select distinct {FILTERS[name]} as word from mart_cost_ledger_daily order by 1"
    return volume.keep(("ledger", name), lambda: [row["word"] for row in volume.rows(sql) if row["word"]])
