"""Validation of staged files: each kind of check fails on data made to fail it, and names the rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from quality_data import BAD, GOOD, NAMES, checked, contract, failures, stage

from pipelines.base.errors import CheckError, UsageError
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.validate import Validated, validate


@pytest.mark.parametrize("severity", ["error", "warn"])
@pytest.mark.parametrize(
    ("checks", "row", "check", "shown"),
    [
        ("not_null: [bucket]", "no_bucket", "bucket_not_null", {"bucket": None}),
        ("in_set: {bucket: [run, idle]}", "it's odd", "bucket_in_set", {"bucket": "it's"}),
        (
            "not_negative: [effective_cost_usd]",
            "refund",
            "effective_cost_usd_not_negative",
            {"effective_cost_usd": "-0.0000000001"},
        ),
        ("between: {saving_ratio: [-10, 1]}", "too_good", "saving_ratio_between", {"saving_ratio": 1.5}),
        ("between: {saving_ratio: [null, 1]}", "too_good", "saving_ratio_between", {"saving_ratio": 1.5}),
        (
            "between: {started_date: [2000-01-01, 2100-01-01]}",
            "early",
            "started_date_between",
            {"started_date": "1999-12-31"},
        ),
        (
            "between: {started_at: [2000-01-01 00:00:00, null]}",
            "early",
            "started_at_between",
            {"started_at": "1999-12-31T23:00:00"},
        ),
        ("in_set: {is_billed: [true]}", "unbilled", "is_billed_in_set", {"is_billed": False}),
        (
            "rows: {run_without_a_bill: 'select run_id, started_at from {batch} where not is_billed'}",
            "unbilled",
            "run_without_a_bill",
            {"started_at": "2026-07-01T10:00:00"},
        ),
    ],
)
def test_a_failing_check_names_its_rows_at_either_severity(
    tmp_path: Path, severity: str, checks: str, row: str, check: str, shown: dict[str, object]
) -> None:
    promised = contract(tmp_path, f"{severity}:\n  {checks}")
    results = checked([stage(tmp_path, GOOD, BAD[row])], promised)
    failed = failures(results)
    assert list(failed) == [check]
    assert failed[check].severity == severity
    assert failed[check].unexpected_count == 1
    assert failed[check].observed == "failing rows: 1"
    assert failed[check].sample == [{"run_id": row, **shown}]
    assert [result.check for result in results] == [each.name for each in promised.checks]


def test_a_result_names_the_expectation_that_was_validated(tmp_path: Path) -> None:
    """Columns that are never null share an expectation, until one of them has a null."""
    rules = "error: {not_null: [bucket], in_set: {is_billed: [true]}}\nwarn: {not_null: [epoch_count]}"
    promised = contract(tmp_path, rules)
    counted, in_set = "counted_rows_expectation", "expect_column_values_to_be_in_set"
    alone = "expect_column_values_to_not_be_null"
    good = checked([stage(tmp_path, GOOD)], promised)
    assert [(result.check, result.expectation) for result in good] == [
        ("columns_as_typed", ""),
        ("key_unique", counted),
        ("run_id_not_null", counted),
        ("bucket_not_null", counted),
        ("is_billed_in_set", in_set),
        ("epoch_count_not_null", alone),
    ]
    bad = checked([stage(tmp_path, GOOD, BAD["no_bucket"])], promised)
    assert [result.expectation for result in bad] == ["", counted, alone, alone, in_set, alone]


def test_a_time_with_a_zone_is_refused(tmp_path: Path) -> None:
    """Times are UTC, and one with a zone cannot be compared with one without."""
    with pytest.raises(UsageError, match=r"started_at has .* which is not a TIMESTAMP"):
        contract(tmp_path, "error: {between: {started_at: [2026-07-01 00:00:00, 2026-07-02 00:00:00+02:00]}}")


def test_another_count_of_failing_rows_stops_the_build(tmp_path: Path) -> None:
    promised = contract(tmp_path, "error: {not_null: [bucket]}")
    with DuckDBEngine() as engine:
        engine.view("mart_run", [stage(tmp_path, GOOD, BAD["no_bucket"])])
        with pytest.raises(CheckError, match="bucket_not_null of mart_run fails for 1 rows in SQL, for 2 in Great"):
            validate(engine, "mart_run", promised, gate=lambda table, checks: {"bucket_not_null": Validated("x", 2)})


@pytest.mark.parametrize(("row", "passed"), [(GOOD, True), (BAD["unbilled"], False)])
def test_a_check_keeps_its_figures_whether_it_passes_or_not(tmp_path: Path, row: str, passed: bool) -> None:
    checks = (
        "error: {rows: {run_without_a_bill: {fails: 'select run_id from {batch} where not is_billed', "
        "shows: 'select run_id, effective_cost_usd from {batch}'}}}"
    )
    results = checked([stage(tmp_path, row)], contract(tmp_path, checks))
    (check,) = (result for result in results if result.check == "run_without_a_bill")
    run_id = "a" if passed else "unbilled"
    assert (check.passed, check.figures) == (passed, [{"run_id": run_id, "effective_cost_usd": "10.5000000000"}])
    assert check.sample == ([] if passed else [{"run_id": run_id}])


def test_a_repeated_key_is_named_with_its_count(tmp_path: Path) -> None:
    promised = contract(tmp_path, key="[run_id, bucket]")
    other = GOOD.replace("'run'", "'idle'")
    results = checked([stage(tmp_path, GOOD, GOOD, GOOD, other)], promised)
    failed = failures(results)
    assert list(failed) == ["key_unique"]
    assert failed["key_unique"].unexpected_count == 1
    assert failed["key_unique"].sample == [{"run_id": "a", "bucket": "run", "row_count": 3}]


def test_a_key_without_a_value_fails_by_the_part_that_is_null(tmp_path: Path) -> None:
    promised = contract(tmp_path, key="[run_id, bucket]")
    results = checked([stage(tmp_path, GOOD, BAD["no_bucket"])], promised)
    failed = failures(results)
    assert list(failed) == ["bucket_not_null"]
    assert failed["bucket_not_null"].sample == [{"run_id": "no_bucket", "bucket": None}]


def test_a_table_without_a_key_shows_whole_rows(tmp_path: Path) -> None:
    promised = contract(tmp_path, "error: {not_null: [bucket]}", key="[]")
    results = checked([stage(tmp_path, GOOD, BAD["no_bucket"])], promised)
    (shown,) = failures(results)["bucket_not_null"].sample
    assert list(shown) == NAMES.split(", ")
    assert shown["run_id"] == "no_bucket"


def test_columns_that_differ_are_named_and_nothing_else_is_checked(tmp_path: Path) -> None:
    promised = contract(tmp_path, "warn: {not_negative: [saving_ratio]}")
    casts = NAMES.replace("saving_ratio", "saving_ratio::varchar as saving_ratio").replace(", bucket", "")
    casts = casts.replace("started_date", "started_date::date as started_date")
    casts = casts.replace("started_at", "started_at::timestamp as started_at")
    casts = casts.replace("epoch_count", "epoch_count::bigint as epoch_count")
    casts = casts.replace("effective_cost_usd", "effective_cost_usd::decimal(38, 10) as effective_cost_usd")
    results = checked([stage(tmp_path, GOOD, casts=f"{casts}, 1 as extra")], promised)
    assert [result.passed for result in results] == [False] * 4
    assert results[0].check == "columns_as_typed"
    assert results[0].severity == "error"
    assert results[0].unexpected_count == 3
    assert results[0].sample == [
        {"column": "bucket", "wanted": "VARCHAR", "found": None},
        {"column": "saving_ratio", "wanted": "DOUBLE", "found": "VARCHAR"},
        {"column": "extra", "wanted": None, "found": "INTEGER"},
    ]
    assert {result.observed for result in results[1:]} == {"not checked: the columns differ"}


def test_counts_are_whole_and_samples_are_cut(tmp_path: Path) -> None:
    rules = "error:\n  not_null: [bucket]\n  rows: {no_bucket: 'select * from {batch} where bucket is null'}"
    rows = [BAD["no_bucket"].replace("'no_bucket'", f"'r{number:03}'") for number in range(300)]
    results = checked([stage(tmp_path, *rows)], contract(tmp_path, rules), sample=2)
    for result in failures(results).values():
        assert result.unexpected_count == 300
        assert [row["run_id"] for row in result.sample] == ["r000", "r001"]


def test_good_rows_pass_every_kind_of_check(tmp_path: Path) -> None:
    rules = (
        "error:\n  not_null: [bucket]\n  not_negative: [epoch_count, effective_cost_usd]\n"
        "  in_set: {bucket: [run]}\n"
        "  between: {saving_ratio: [0, 1], started_date: [2026-07-01, 2026-07-01]}\n"
        "  rows:\n"
        "    none: \"select * from {batch} where bucket[:1] in ('%', ':a', '?') or {{'a': 1}} = {{'a': 2}}\""
    )
    results = checked([stage(tmp_path, GOOD)], contract(tmp_path, rules))
    assert failures(results) == {}
    assert {(result.unexpected_count, len(result.sample)) for result in results} == {(0, 0)}


def test_null_passes_what_is_not_about_null(tmp_path: Path) -> None:
    rules = "error: {in_set: {bucket: [run]}, between: {saving_ratio: [0, 1]}, not_negative: [epoch_count]}"
    nulls = "('n', null, '2026-07-01', '2026-07-01', null, null, null, null)"
    assert failures(checked([stage(tmp_path, GOOD, nulls)], contract(tmp_path, rules))) == {}


def test_an_empty_table_keeps_its_promises(tmp_path: Path) -> None:
    rules = "error: {not_null: [bucket], between: {epoch_count: [1, 2]}, rows: {any: 'from {batch}'}}"
    path = tmp_path / "empty.parquet"
    with DuckDBEngine() as engine:
        engine.view("staged_rows", [stage(tmp_path, GOOD)])
        engine.write("select * from staged_rows where false", path)
    assert failures(checked([path], contract(tmp_path, rules))) == {}
