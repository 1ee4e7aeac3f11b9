"""A failed check as a sentence: rows, an example in words with its dollars, the owner; never a dump of a row."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pipelines.models.warnings import SENTENCES, example, failed_checks, sentence, sentences, warnings
from pipelines.transforms.mart_portfolio import _without_runs

OWNER = " Owner: ml-finops."
RUN = {
    "discount_convention": None,
    "team": "nlp",
    "billing_currency": "EUR",
    "effective_cost_usd": Decimal("-1234.5"),
    "run_id": "llama-1",
}


def check(**changed: Any) -> dict[str, Any]:
    return {
        "table": "marts/mart_run_cost",
        "period": None,
        "title": "a run costs less than nothing",
        "unexpected_count": 1,
        "sample": [RUN],
        **changed,
    }


def test_an_example_has_its_key_then_its_amounts_and_no_unknown_value() -> None:
    assert example("marts/mart_run_cost", [RUN]) == "run llama-1, effective cost \u2212EUR 1,234.50, team nlp"
    assert example("marts/mart_run_cost", []) == ""


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {},
            f"1 row of mart_run_cost, for example run llama-1, effective cost \u2212EUR 1,234.50, team nlp.{OWNER}",
        ),
        ({"unexpected_count": 12, "sample": []}, f"12 rows of mart_run_cost.{OWNER}"),
        (
            {"unexpected_count": 2, "sample": [], "totals": {"EUR": "-1234.5", "USD": "7"}},
            f"2 rows of mart_run_cost, \u2212EUR 1,234.50 and $7.00 in all.{OWNER}",
        ),
        (
            {"check": "run_without_any_bill_line", "sample": []},
            "1 row of mart_run_cost. Check its resource ids and that the bill of its account and month is delivered."
            f"{OWNER}",
        ),
        ({"period": "2026-07", "sample": []}, f"1 row of mart_run_cost 2026-07.{OWNER}"),
        (
            {
                "table": "marts/mart_portfolio",
                "check": "declared_workload_without_a_billed_run",
                "sample": [{name: _without_runs("typo")[name] for name in ("workload_id", "missing_evidence")}],
            },
            # Only [[decisions.workloads]] declare workloads.
            "1 row of mart_portfolio, for example workload typo, missing evidence no billed run on GPU or Trainium has "
            "this workload_id. Write the workload id under [[decisions.workloads]] as mart_run_cost has it; a pilot "
            f"needs one billed baseline run.{OWNER}",
        ),
    ],
)
def test_a_failed_check_is_a_sentence(changed: dict[str, Any], text: str) -> None:
    assert sentence(check(**changed)) == f"a run costs less than nothing: {text}"


@pytest.mark.parametrize("name", SENTENCES)
def test_a_warning_of_a_reader_is_its_sentence_and_how_many_more(name: str) -> None:
    read = {"table": "raw/tracker_run", "sample": [{name: "jobs/a.jsonl ends in the middle of a line."}]}
    found = "tracker_run: jobs/a.jsonl ends in the middle of a line."
    assert sentence(check(**read)) == found
    more = " And 2 more of this source; `trainledger check` lists each."
    assert sentence(check(**read, unexpected_count=3)) == found + more


def test_amounts_that_cancel_have_no_total() -> None:
    found = sentence(check(unexpected_count=2, sample=[], totals={"USD": "0.0000000000"}))
    assert found == f"a run costs less than nothing: 2 rows of mart_run_cost.{OWNER}"


def test_the_rows_of_a_page_have_labels_and_rounded_figures() -> None:
    row = {"run_id": "a", "cost_at_stake_usd": "55.0400000000", "quantity": "2.0000000000", "used_ratio": 1 / 3}
    (failed,) = failed_checks([check(check="x", severity="warn", passed=False, sample=[row | {"owner": None}])], "warn")
    assert failed["rows"] == [
        {"run": "a", "cost at stake": "$55.04", "quantity": "2.00", "used ratio": "0.33", "owner": "unknown"}
    ]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("billing_month", "2018-10-01", "billing month 2018-10"),
        ("billing_month", date(2018, 10, 1), "billing month 2018-10"),
        ("first_month", "never", "first month never"),
        ("hour_started_at", "2018-10-30T17:00:00", "hour started at 2018-10-30 17:00 UTC"),
        ("hour_started_at", datetime(2018, 10, 30, 17), "hour started at 2018-10-30 17:00 UTC"),
        ("as_of_at", "2018-10-30 17:00:07.250000", "as of at 2018-10-30 17:00:07.250000 UTC"),
        ("usage_date", "2018-10-01", "usage date 2018-10-01"),
        ("run_name", "2018-10-30T17:00:00", "run name 2018-10-30T17:00:00"),
    ],
)
def test_a_month_is_no_day_and_a_time_has_its_zone(name: str, value: object, shown: str) -> None:
    assert example("marts/mart_run_cost", [{name: value}]) == shown


@pytest.mark.parametrize(
    ("name", "title", "failure"),
    [
        ("a_usd_not_null", "a_usd is never null", "a_usd is null"),
        ("a_usd_not_negative", "a_usd is never negative", "a_usd is negative"),
        ("kind_in_set", "kind is one of gpu, cpu", "kind is not one of gpu, cpu"),
        ("kind_in_set_warn", "kind is one of gpu", "kind is not one of gpu"),
        ("a_ratio_between", "a_ratio lies between 0 and 1", "a_ratio does not lie between 0 and 1"),
    ],
)
def test_a_warning_is_titled_by_what_failed(name: str, title: str, failure: str) -> None:
    one = check(check=name, title=title, severity="warn", passed=False)
    assert sentence(one).startswith(f"{failure}: 1 row")
    (row,) = failed_checks([one], "warn")
    assert row["title"] == failure and sentence(row).startswith(f"{failure}: 1 row")


def test_what_reading_a_source_warns_of_is_counted_as_warnings() -> None:
    read = check(check="source_without_warnings", severity="warn", passed=False, sample=[{"warning": "a.jsonl line 1"}])
    rows = check(check="x", severity="warn", passed=False)
    assert [row["noun"] for row in failed_checks([read, rows], "warn")] == ["warning", "row"]


@pytest.mark.parametrize("name", ["tokens_seen", "tokens_by_steps", "total_tokens"])
@pytest.mark.parametrize("value", [26214400, 26214400.0, "26214400.0000000000"])
def test_tokens_are_counted_in_thousands_and_without_decimals(name: str, value: object) -> None:
    assert example("marts/mart_run_cost", [{name: value}]).endswith(" 26,214,400")


def test_the_owner_is_who_the_configuration_names() -> None:
    assert sentence(check(), {"ml-finops": "ana@acme.dev"}).endswith(" Owner: ana@acme.dev.")


def test_months_in_a_row_are_the_first_and_the_last() -> None:
    """36 months are August 2025 to July 2028; two are no row; months with many gaps are counted."""
    every = [f"{year}-{number:02d}" for year in range(2025, 2029) for number in range(1, 13)][7:43]
    shared = {"severity": "warn", "passed": False, "sample": [], "check": "x"}

    def where(months: list[str]) -> str:
        (failed,) = failed_checks([check(**shared, period=month) for month in months], "warn")
        return sentence(failed).partition(" rows of mart_run_cost ")[2]

    assert where(every) == f"2025-08 to 2028-07.{OWNER}"
    assert where([*every[:2], *every[3:6]]) == f"2025-08, 2025-09, 2025-11 to 2026-01.{OWNER}"
    assert where(every[::2]) == f"2025-08 to 2028-06 (18 months).{OWNER}"


def test_a_long_list_is_cut_at_whole_names() -> None:
    """Names of 12 letters and ", ": 17 of 26 are 236 characters, 18 are 250, and 240 fit."""
    types = [f"USW2-m6i.{number:03d}" for number in range(26)]
    shown = ", ".join(types[:17])
    assert example("x", [{"unrated_usage_types": ", ".join(types)}]) == f"unrated usage types {shown} and 9 more"


def test_a_build_prints_five_and_counts_the_others() -> None:
    printed = warnings([check()] * 7)
    assert len(printed) == 6
    assert printed[0].startswith("Warning: a run costs")
    assert printed[-1] == "And 2 more warnings; `trainledger check` lists every one."


def test_a_check_that_failed_in_two_months_is_one_warning_with_the_dollars_of_both() -> None:
    """Build, report and check count these; 7.50 and 0.25 dollars are 7.75."""
    shared = {"check": "run_below_zero", "severity": "warn", "passed": False, "sample": []}
    june = check(**shared, period="2026-06", totals={"USD": "7.50"}, unexpected_count=2)
    july = check(**shared, period="2026-07", totals={"USD": "0.25"})
    passed = check(**shared | {"passed": True})
    (warning,) = failed_checks([june, july, passed], "warn")
    assert sentence(warning).startswith(
        "a run costs less than nothing: 3 rows of mart_run_cost 2026-06, 2026-07, $7.75 in all."
    )
    assert failed_checks([june, july, passed], "error") == []
    # A table kept by source has a part of each: one month, 1.00 dollar.
    parts = [check(**shared, period=f"2026-07/{name}", totals={"USD": "0.50"}) for name in ("payer-a", "payer-b")]
    (warning,) = failed_checks(parts, "warn")
    assert warning["periods"] == ["2026-07"]
    assert "2 rows of mart_run_cost 2026-07, $1.00 in all." in sentence(warning)


def test_check_lists_every_sentence_of_a_reader() -> None:
    read = {"table": "raw/tracker_run", "check": "source_without_warnings", "severity": "warn", "passed": False}
    (warning,) = failed_checks(
        [check(**read, unexpected_count=3, sample=[{"warning": "a is empty."}, {"warning": "b is cut."}])], "warn"
    )
    assert sentences(warning) == ["tracker_run: a is empty.", "tracker_run: b is cut.", "tracker_run: and 1 more."]
