"""The ledger of a month, filtered by the engine, next to what its filters cost in every month."""

from collections.abc import Mapping
from typing import Any

from pipelines.dashboard import query as parameters
from pipelines.dashboard.reader import Volume

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


def ledger_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    """The requested part of the ledger."""
    month, months = chosen_month(volume, request)
    choices = {name: _known(volume, name) if months else [] for name in FILTERS}
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
