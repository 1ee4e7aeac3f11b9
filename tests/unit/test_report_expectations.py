"""The page of Great Expectations' results contains what the publication recorded, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.report_marts import PUBLISHED, part, rendered, words

COUNTED, BETWEEN = "counted_rows_expectation", "expect_column_values_to_be_between"
NOT_NULL = "expect_column_values_to_not_be_null"


def check(name: str, title: str, expectation: str | None = COUNTED, **more: Any) -> dict[str, Any]:
    """A published check of a mart; without an expectation, as versions wrote it that recorded none."""
    plain = {
        **{"table": "marts/mart_run_cost", "period": None, "check": name, "severity": "error", "title": title},
        **{"passed": True, "unexpected_count": 0, "sample": []},
    }
    return plain | more | ({} if expectation is None else {"expectation": expectation})


def page_of(folder: Path, *checks: dict[str, Any]) -> str:
    return rendered(folder, {}, replace(PUBLISHED, checks=[*checks]), "expectations")


def test_each_expectation_has_its_type_columns_severity_result_and_rows(tmp_path: Path) -> None:
    failed = {"severity": "warn", "passed": False}
    page = page_of(
        tmp_path,
        check("columns_as_typed", "columns and types match the contract", ""),
        check("key_unique", "run_id identifies one row"),
        check("run_id_not_null", "run_id is never null"),
        check("status_not_null", "status is never null"),
        check("goodput_ratio_between", "goodput_ratio lies between 0 and 1", BETWEEN),
        check("run_without_any_bill_line", "run without any bill line", unexpected_count=2, **failed),
        check("x", "a check of a table that is not public", "", table="core/fct_run"),
    )
    # Two columns share one query, names and types of columns are not validated: 4 expectations of 6 checks.
    assert "1 of 4 expectations failed, 0 of severity error. " in words(page)
    assert "mart_run_cost selects no row: run without any bill line warn 2" in part(page, "failed")
    assert "mart_run_cost 4 1" in part(page, "suites")
    suite = part(page, "expectations")
    for row in (
        f"run_id identifies one row {COUNTED} error passed 0",
        f"run_id, status are never null {COUNTED} error passed 0",
        f"goodput_ratio lies between 0 and 1 {BETWEEN} error passed 0",
        f"selects no row: run without any bill line {COUNTED} warn failed 2",
    ):
        assert row in suite
    assert "columns and their types" not in suite and "not public" not in page


def test_months_of_a_mart_are_one_expectation_that_names_those_it_failed_in(tmp_path: Path) -> None:
    """In June the columns were null together nowhere; in July each was validated on its own, and one failed."""
    page = page_of(
        tmp_path,
        *(check(f"{name}_not_null", f"{name} is never null", period="2026-06") for name in ("run_id", "status")),
        check("run_id_not_null", "run_id is never null", NOT_NULL, period="2026-07"),
        check("status_not_null", "status is never null", NOT_NULL, period="2026-07", passed=False, unexpected_count=3),
        check("cost_between", "cost is at most 1", BETWEEN, period="2026-06", passed=False, unexpected_count=1),
        check("cost_between", "cost is at most 1", BETWEEN, period="2026-07", passed=False, unexpected_count=4),
    )
    failed = part(page, "failed")
    assert "status is never null July 2026 error 3" in failed
    # A check that this version's contract does not have is shown by its title.
    assert "cost is at most 1 June and July 2026 error 5" in failed
    assert f"run_id, status are never null {COUNTED} error passed 0" in part(page, "expectations")


def test_what_great_expectations_did_not_validate_is_not_shown_as_passed(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        check("key_unique", "run_id identifies one row", None),
        check("run_id_not_null", "run_id is never null", ""),
    )
    assert "Great Expectations validated none of these marts. " in words(page)
    assert "2 checks of these marts have no result of Great Expectations" in words(page)
    assert "mart_run_cost 0 0 2" in part(page, "suites")
    assert "run_id identifies one row error not validated n/a" in part(page, "expectations")
    assert "passed</span>" not in page


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    title = "<script>alert(1)</script> & {{ 1 }}"
    page = page_of(tmp_path, check("hostile", title, "<b>type</b>", passed=False, unexpected_count=1))
    assert "<script" not in page and "<b>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; {{ 1 }}") == 2
    assert "http:" not in page and "https:" not in page


def test_a_publication_without_results_has_a_page(tmp_path: Path) -> None:
    assert "This publication records no check of a public mart." in words(page_of(tmp_path))
