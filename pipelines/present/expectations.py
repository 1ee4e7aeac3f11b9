"""What Great Expectations returned for the public marts: the rows of the page of its results."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.models.contract import contract_paths, load_contract

_MARTS = "marts/"
# Compares names and types of columns, which no expectation does.
_COLUMNS = "columns_as_typed"
_NOT_NULL = "expect_column_values_to_not_be_null"


def validated(checks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The expectations of each public mart over all its months, from the published checks.

    Each has its `mart`, `type` (empty where Great Expectations did not validate the check), `columns`, `promise` in
    words, `severity`, `passed`, the months (YYYY-MM) it failed in and the number of failing rows. Columns that one
    expectation found to be never null share it.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for check in checks:
        if not check["table"].startswith(_MARTS) or check["check"] == _COLUMNS:
            continue
        columns, is_shared = _columns(check)
        title = check.get("title") or check["check"].replace("_", " ")
        type_ = check.get("expectation", "")
        row = found.setdefault(
            (check["table"], type_, check["severity"], "" if is_shared else check["check"]),
            {
                "mart": check["table"].removeprefix(_MARTS),
                "type": type_,
                "columns": [],
                "promise": "are never null" if is_shared else title.removeprefix(" + ".join(columns)).strip(),
                "severity": check["severity"],
                "passed": True,
                "periods": [],
                "unexpected_count": 0,
            },
        )
        row["columns"] += [column for column in columns if column not in row["columns"]]
        row["passed"] &= check["passed"]
        row["periods"] += [check["period"]] if check["period"] and not check["passed"] else []
        row["unexpected_count"] += check["unexpected_count"]
    return sorted(found.values(), key=lambda row: row["mart"])


def _columns(check: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The columns a check is about, and whether one expectation covered other columns too."""
    promised = load_contract(check["table"]).checks if check["table"] in contract_paths() else ()
    for promise in promised:
        if promise.name == check["check"]:
            is_shared = promise.kind == "not_null" and check.get("expectation", "") not in ("", _NOT_NULL)
            return promise.columns, is_shared
    return (), False
