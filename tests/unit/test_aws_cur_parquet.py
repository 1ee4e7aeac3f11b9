"""Delivered Parquet: types and pages that are not as AWS writes them are read right, reported, or refused."""

from __future__ import annotations

import io
import re
import struct
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cur_exports import CUR2_LINE, bill, cur2_export, parquet, stored

from pipelines.base.errors import SourceError

CUR2_THREE = [{**CUR2_LINE, "line_item_unblended_cost": cost} for cost in ("1.25", "2.5", "0.00000000005")]


def refusal(root: Path, content: bytes) -> str:
    with pytest.raises(SourceError) as raised:
        stored(cur2_export(root / "bucket", {"a.parquet": content}), root / "raw")
    return str(raised.value)


def test_a_parquet_with_damaged_costs_is_refused(tmp_path: Path) -> None:
    content = parquet(CUR2_THREE * 1000)
    chunks = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0)
    costs = next(
        c for c in map(chunks.column, range(chunks.num_columns)) if c.path_in_schema.endswith("unblended_cost")
    )
    broken = bytearray(content)
    for at in range(costs.data_page_offset, costs.dictionary_page_offset + costs.total_compressed_size):
        broken[at] ^= 0xFF
    error = refusal(tmp_path, bytes(broken))
    assert "is not a complete Parquet file" in error


def test_a_page_that_is_not_as_it_was_summed_is_refused(tmp_path: Path) -> None:
    """One bit of a cost turned, in a file that carries checksums."""
    target = io.BytesIO()
    table = pq.read_table(io.BytesIO(parquet(CUR2_THREE)))
    pq.write_table(table, target, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(target.getvalue())
    content[content.index(struct.pack("<d", table["line_item_unblended_cost"][0].as_py()))] ^= 1
    error = refusal(tmp_path, bytes(content))
    assert "is not a complete Parquet file" in error


def test_costs_of_few_digits_are_taken_as_they_are(tmp_path: Path) -> None:
    """A float of 32 bits holds 1,234,567.875 exactly; five of them are 6,172,839.375."""
    lines = [{**CUR2_LINE, "line_item_unblended_cost": 1234567.875}] * 5
    content = parquet(lines, {"line_item_unblended_cost": pa.float32()})
    raws = stored(cur2_export(tmp_path, {"a.parquet": content}), tmp_path / "raw")
    assert raws[0].billed_total == Decimal("6172839.375")
    found = bill(raws, "select sum(line_item_unblended_cost) from aws_cur_line_item")
    assert found == [(Decimal("6172839.375"),)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.struct([("user_run_id", pa.string())]), {"user_run_id": "good"}),
        (pa.map_(pa.int64(), pa.string()), [(1, "good")]),
        (pa.map_(pa.string(), pa.int64()), [("user_run_id", 1)]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_tags_that_are_no_map_of_texts_are_reported(tmp_path: Path, kind: pa.DataType, value: object) -> None:
    lines = [{**CUR2_LINE, "resource_tags": value}]
    table = pq.read_table(io.BytesIO(parquet([CUR2_LINE])))
    target = io.BytesIO()
    pq.write_table(
        table.append_column("resource_tags", pa.array([line["resource_tags"] for line in lines], kind)), target
    )
    (raw,) = stored(cur2_export(tmp_path, {"a.parquet": target.getvalue()}), tmp_path / "raw")
    (warning,) = raw.warnings
    assert re.search(
        r": column resource_tags is \S.*, not a map of texts; it is read as missing\. Have it delivered as a map\.$",
        warning,
    )
    assert bill([raw], "select tag_run_id from aws_cur_line_item") == [(None,)]


def test_costs_in_decimals_that_no_engine_adds_are_refused(tmp_path: Path) -> None:
    lines = [{**CUR2_LINE, "line_item_unblended_cost": Decimal("55.04")}]
    table = pq.read_table(io.BytesIO(parquet(lines, {"line_item_unblended_cost": pa.decimal128(20, 2)})))
    at = table.schema.get_field_index("line_item_unblended_cost")
    wide = table["line_item_unblended_cost"].cast(pa.decimal256(50, 10))
    target = io.BytesIO()
    pq.write_table(table.set_column(at, "line_item_unblended_cost", wide), target)
    error = refusal(tmp_path, target.getvalue())
    assert "column line_item_unblended_cost is decimal256(50, 10), not a number" in error
