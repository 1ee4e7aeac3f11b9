"""The SELECT over stored deliveries: the same columns from every kind, one tag under all its spellings."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest
import sqlglot
from support.cur_exports import (
    CUR2_LINE,
    LEGACY_LINE,
    bill,
    csv_text,
    cur2_export,
    legacy_export,
    packed,
    parquet,
    stored,
)

from pipelines.ingest.billing.columns import REVIEWED, TagKey
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.select import raw_select
from pipelines.ingest.billing.tags import bare, lookups

TAGS = {"run_id": ("run_id", "RunId"), "owner": ("owner",), "team": ("team",)}


def legacy(tmp_path: Path, **tags: str) -> RawDelivery:
    line = LEGACY_LINE | {f"resourceTags/{key}": value for key, value in tags.items()}
    (raw,) = stored(legacy_export(tmp_path / "legacy", {"a.csv.gz": packed(csv_text([line]))}), tmp_path / "raw")
    return raw


def cur2(tmp_path: Path, *lines: dict, name: str = "ml-cur2") -> RawDelivery:
    files = {f"{name}.snappy.parquet": parquet([CUR2_LINE | line for line in lines])}
    (raw,) = stored(cur2_export(tmp_path / name, files, name=name), tmp_path / name / "raw")
    return raw


def test_each_column_of_the_list_is_there_once_and_filled_in() -> None:
    with REVIEWED.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len({(row["raw_table"], row["column_name"]) for row in rows}) == len(rows)
    assert {row["raw_table"] for row in rows} == {"aws_cur_line_item", "aws_focus_line_item"}
    assert {row["required"] for row in rows} == {"yes", "no", "each line"}
    assert {row["on_bad_value"] for row in rows} == {"refuse", "null", "text"}
    assert [row for row in rows if "" in (row["type"], row["source"], row["as_of"])] == []


def test_the_columns_are_those_of_the_list_in_its_order(tmp_path: Path) -> None:
    with REVIEWED.open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["raw_table"] == "aws_cur_line_item"]
    listed = [row["column_name"] for row in rows if row["type"] != "TAGS"]
    expected = ["source_name", "delivery_id", "billing_period", "source_file", "source_row", *listed]
    expected += ["tag_run_id", "tag_owner", "tag_team", "tag_json"]
    for raws in ([], [legacy(tmp_path)], [cur2(tmp_path, {})]):
        tree = sqlglot.parse_one(raw_select(raws, TAGS).sql, read="duckdb")
        assert tree.named_selects == expected


def test_kinds_and_files_of_different_columns_are_one_bill(tmp_path: Path) -> None:
    net = csv_text([CUR2_LINE | {"line_item_net_unblended_cost": "40"}])
    files = {"a-1.csv.gz": packed(csv_text([CUR2_LINE])), "a-2.csv.gz": packed(net)}
    (mixed,) = stored(cur2_export(tmp_path / "mixed", files, name="mixed"), tmp_path / "mixed" / "raw")
    rows = bill(
        [legacy(tmp_path), cur2(tmp_path, {}), mixed],
        "select sum(line_item_unblended_cost), sum(line_item_net_unblended_cost), count(*) from aws_cur_line_item",
    )
    assert rows == [(Decimal("220.16"), Decimal("40"), 4)]


@pytest.mark.parametrize(
    "key",
    [
        "user:RunId",
        "user:run_id",
        "user:RUN-ID",
        "user_run_id",
        "resourceTags/RunId",
        "resourceTags/user:RunId",
        "RunId",
    ],
)
def test_one_tag_under_all_its_spellings(key: str) -> None:
    assert bare(key) == "runid"


def test_a_tag_of_every_export(tmp_path: Path) -> None:
    athena = {**CUR2_LINE, "resource_tags_user_run_id": "r-42"}
    files = {"x.snappy.parquet": parquet([athena])}
    (flat,) = stored(
        legacy_export(tmp_path / "flat", files, folder="ml-cur/year=2026/month=7"), tmp_path / "flat" / "raw"
    )
    raws = [
        legacy(tmp_path, **{"user:RunId": "r-42"}),
        flat,
        cur2(tmp_path, {"resource_tags": {"user_run_id": "r-42", "user_team": ""}}, name="map"),
        cur2(tmp_path, {"tags": {"resourceTags/RunId": "r-42", "accountTag/Team": "nlp"}}, name="all-tags"),
    ]
    text = json.dumps({"user_run_id": "r-42", "user_team": ""})
    files = {"x.csv.gz": packed(csv_text([CUR2_LINE | {"resource_tags": text}]))}
    raws += stored(cur2_export(tmp_path / "json", files, name="json"), tmp_path / "json" / "raw")
    # Only the export of all tags states which team the account belongs to.
    expected = [("r-42", None), ("r-42", None), ("r-42", None), ("r-42", "nlp"), ("r-42", None)]
    assert bill(raws, "select tag_run_id, tag_team from aws_cur_line_item", TAGS) == expected
    assert raw_select(raws, TAGS).warnings == ()


def test_untagged_is_null_whatever_it_looks_like(tmp_path: Path) -> None:
    untagged = [{"resource_tags": tags} for tags in ({}, None, {"user_other": "x"}, {"user_run_id": ""})]
    raw = cur2(tmp_path, {"resource_tags": {"user_run_id": "r-1"}}, *untagged)
    rows = bill([raw], "select tag_run_id from aws_cur_line_item order by source_row", TAGS)
    assert rows == [("r-1",), (None,), (None,), (None,), (None,)]


def test_twins_by_case_are_both_tried_and_reported(tmp_path: Path) -> None:
    line = LEGACY_LINE | {"resourceTags/user:Run_ID": "", "resourceTags/user:run_id": "r-2"}
    lines = [line, line | {"resourceTags/user:Run_ID": "r-1"}]
    (raw,) = stored(legacy_export(tmp_path, {"a.csv.gz": packed(csv_text(lines))}), tmp_path / "raw")
    assert bill([raw], "select tag_run_id from aws_cur_line_item order by source_row", TAGS) == [
        ("r-2",),
        ("r-1",),
    ]
    assert raw_select([raw], TAGS).warnings == (
        "20260701-20260801/asm-1/a.csv.gz: the tags user:Run_ID and user:run_id are one key for run_id; "
        "each line takes the first that is filled. Use one spelling.",
    )


def test_a_parquet_column_that_sql_cannot_distinguish_is_named(tmp_path: Path) -> None:
    twins = {"resource_tags_user_Run_ID": "r-1", "resource_tags_user_run_id": "r-2"}
    raw = cur2(tmp_path, twins)
    assert bill([raw], "select tag_run_id from aws_cur_line_item", TAGS) == [("r-1",)]
    assert [warning.partition(": ")[2] for warning in raw.warnings] == [
        "column resource_tags_user_run_id differs only by case from an earlier one and is not read. Export one of them."
    ]


def test_tag_keys_are_found_in_every_row_group_and_file(tmp_path: Path) -> None:
    tags = [{"resource_tags": {f"user_other_{number}": "x"}} for number in range(3)]
    lines = [CUR2_LINE | line for line in (*tags, {"resource_tags": {"user_run_id": "r-1"}})]
    files = {"a-1.parquet": parquet(lines, rows_per_group=1), "a-2.parquet": parquet(lines[:1])}
    raws = stored(cur2_export(tmp_path, files), tmp_path / "raw")
    assert [len(file.tag_keys) for file in raws[0].files] == [4, 1]
    assert bill(raws, "select count(*), count(tag_run_id) from aws_cur_line_item", TAGS) == [(5, 1)]


def test_different_accepted_keys_are_tried_in_the_order_given(tmp_path: Path) -> None:
    raw = cur2(
        tmp_path,
        {"resource_tags": {"user_job": "j-1", "user_run": "r-1"}},
        {"resource_tags": {"user_job": "j-2"}},
    )
    shown = bill([raw], "select tag_run_id from aws_cur_line_item order by source_row", {"run_id": ("run", "job")})
    assert shown == [("r-1",), ("j-2",)]
    assert raw_select([raw], {"run_id": ("run", "job")}).warnings == ()


def test_new_tag_settings_need_no_new_ingest(tmp_path: Path) -> None:
    raw = legacy(tmp_path, **{"user:RunId": "r-42", "user:Squad": "nlp"})
    assert bill([raw], "select tag_team from aws_cur_line_item", TAGS) == [(None,)]
    assert bill([raw], "select tag_team from aws_cur_line_item", {"team": ("squad",)}) == [("nlp",)]


def test_a_tag_that_is_itself_called_user_something() -> None:
    keys = [
        TagKey("user_user_name", "resource_tags", "resource_tags", True),
        TagKey("user_name", "resource_tags", "resource_tags", True),
    ]
    assert lookups(keys, ["user_name"]) == keys[:1]
    assert lookups(keys[1:], ["user_name"]) == keys[1:]
    assert lookups(keys, ["Name"]) == keys[1:]


def test_hostile_tag_keys_stay_data(tmp_path: Path) -> None:
    key = "user:run'id\"]); drop table x; --"
    raw = legacy(tmp_path, **{key: "r'1"})
    assert bill([raw], "select tag_run_id from aws_cur_line_item", {"run_id": (key,)}) == [("r'1",)]
    mapped = cur2(tmp_path, {"resource_tags": {key: "r'1"}})
    assert bill([mapped], "select tag_run_id from aws_cur_line_item", {"run_id": (key,)}) == [("r'1",)]


def test_product_attributes_come_from_the_map_where_there_is_no_column(tmp_path: Path) -> None:
    raw = cur2(tmp_path, {"product": {"product_name": "EC2", "region": "us-west-2"}}, {"product": None})
    rows = bill([raw], "select product_product_name, product_region_code from aws_cur_line_item order by source_row")
    assert rows == [("EC2", "us-west-2"), (None, None)]
    text = json.dumps({"product_name": "EC2", "region": "us-west-2"})
    files = {"x.csv.gz": packed(csv_text([CUR2_LINE | {"product": text}]))}
    raws = stored(cur2_export(tmp_path / "json", files, name="json"), tmp_path / "json" / "raw")
    assert bill(raws, "select product_product_name, product_region_code from aws_cur_line_item") == [
        ("EC2", "us-west-2")
    ]


def test_empty_texts_of_parquet_are_null(tmp_path: Path) -> None:
    raw = cur2(tmp_path, {"line_item_resource_id": ""}, {"line_item_resource_id": "i-1"})
    rows = bill([raw], "select line_item_resource_id from aws_cur_line_item order by source_row")
    assert rows == [(None,), ("i-1",)]


def test_the_select_has_words_in_spark(tmp_path: Path) -> None:
    raws = [
        legacy(tmp_path, **{"user:RunId": "r-1"}),
        cur2(tmp_path, {"resource_tags": {"user_run_id": "r-42"}}),
    ]
    shown = raw_select(raws, TAGS)
    (spark,) = sqlglot.transpile(shown.sql, read="duckdb", write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)
    names = sqlglot.parse_one(shown.sql, read="duckdb").named_selects
    assert sqlglot.parse_one(spark, read="spark").named_selects == names
