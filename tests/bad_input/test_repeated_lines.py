"""A bill line that a file holds twice: reported by file and row with its dollars; a whole file twice is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cur_exports import CUR2_LINE, csv_text, cur2_export, packed, parquet, source, stored

from pipelines.base.errors import SourceError
from pipelines.config.settings import Warehouse
from pipelines.engine import open_engine
from pipelines.ingest.billing import repeats
from pipelines.ingest.billing.exports import ingest_in_store, list_deliveries
from pipelines.warehouse.stores import open_store

HOUR = "2026-07-01T00:00:00Z/2026-07-01T01:00:00Z"


def line(number: int, cost: str, interval: str = HOUR) -> dict[str, str]:
    named = {"identity_line_item_id": f"line-{number}", "identity_time_interval": interval}
    return {**CUR2_LINE, **named, "line_item_unblended_cost": cost}


LINES = [line(1, "7.00"), line(2, "5.50"), line(3, "1.25")]


def files(form: str, lines: list[dict[str, str]]) -> dict[str, bytes]:
    return {"a.csv.gz": packed(csv_text(lines))} if form == "csv" else {"a.parquet": parquet(lines)}


def warnings(root: Path, form: str, lines: list[dict[str, str]]) -> list[str]:
    (raw,) = stored(cur2_export(root, files(form, lines)), root / "raw")
    return raw.warnings


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_line_that_stands_twice_is_reported(tmp_path: Path, form: str) -> None:
    """The second and third line come again: 5.50 + 1.25 = 6.75 more than once."""
    (warning,) = warnings(tmp_path, form, [*LINES, *LINES[1:]])
    assert "/a." in warning
    # A csv's header is its row 1.
    first, other = (5, 3) if form == "csv" else (4, 2)
    assert warning.endswith(
        f": 2 lines repeat another line in every value and in its id (first row {first}, as row {other}) and bill 6.75 "
        "more than once; have the file delivered again."
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_holds_all_its_lines_twice_is_refused(tmp_path: Path, form: str) -> None:
    """7.00 + 5.50 + 1.25 = 13.75."""
    with pytest.raises(SourceError) as raised:
        warnings(tmp_path, form, [*LINES, *LINES])
    error = str(raised.value)
    assert ": all its 6 lines repeat another line in every value" in error
    assert error.endswith("and bill 13.75 twice; have the file delivered again.")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_lines_that_are_alike_but_not_the_same_are_two(tmp_path: Path, form: str) -> None:
    """An id comes again in another hour, or, against AWS's word, with another cost; lines without one may be equal."""
    later = line(1, "7.00", "2026-07-01T01:00:00Z/2026-07-01T02:00:00Z")
    nameless = {**LINES[0], "identity_line_item_id": ""}
    assert warnings(tmp_path, form, [*LINES, later, line(1, "7.01"), nameless, nameless]) == []


def test_a_csv_added_to_itself_with_its_header_is_refused(tmp_path: Path) -> None:
    text = csv_text(LINES)
    with pytest.raises(SourceError, match=r"a\.csv\.gz, row 5 \(the header is row 1\), column \w+: '\w+' is not"):
        stored(cur2_export(tmp_path, {"a.csv.gz": packed(text + text)}), tmp_path / "raw")


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
def test_executors_find_what_one_machine_finds_in_several_files(tmp_path: Path, form: str, engine: str) -> None:
    """Of executors, each reads one file: what two files share, the engine finds."""
    pack = {"csv.gz": lambda lines: packed(csv_text(lines)), "parquet": parquet}[form]
    nameless = {**LINES[0], "identity_line_item_id": ""}
    other = [line(4, "2.00"), *LINES[1:], line(1, "7.01"), nameless]
    export = cur2_export(tmp_path, {f"a.{form}": pack([*LINES, nameless]), f"b.{form}": pack(other)})
    (raw,) = stored(export, tmp_path / "raw")
    (delivery,) = list_deliveries(source(export), tmp_path / "bucket" / "raw")
    bucket = open_store(str(tmp_path / "bucket"))
    with open_engine(Warehouse.model_validate({"engine": engine})) as opened:
        found = ingest_in_store(delivery, source(export), tmp_path / "bucket" / "raw", bucket, opened)
    assert found.files == raw.files
    assert found.warnings == raw.warnings != []


@pytest.mark.parametrize("most_at_once", [2, 1 << 24])
@pytest.mark.parametrize("form", ["csv.gz", "parquet"])
def test_lines_that_stand_in_two_files_of_a_delivery_are_reported(
    tmp_path: Path, form: str, most_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file has the last two of the first once more, 5.50 + 1.25 = 6.75, and one of its own."""
    monkeypatch.setattr(repeats, "_MOST_AT_ONCE", most_at_once)
    pack = {"csv.gz": lambda lines: packed(csv_text(lines)), "parquet": parquet}[form]
    both = {f"a.{form}": pack(LINES), f"b.{form}": pack([line(4, "2.00"), *LINES[1:]])}
    (raw,) = stored(cur2_export(tmp_path, both), tmp_path / "raw")
    (warning,) = raw.warnings
    assert not [*raw.folder.glob("*ids")]
    # A csv's header is its row 1.
    first, other = (3, 3) if form == "csv.gz" else (2, 2)
    message = (
        f"2 lines repeat a line of another file in every value and in its id (first row {first}, as row {other} of "
    )
    assert f"/b.{form}: {message}" in warning
    assert warning.endswith(f"/a.{form}) and bill 6.75 more than once; have the month delivered again.")


def test_lines_of_two_files_that_are_alike_but_not_the_same_are_two(tmp_path: Path) -> None:
    """One id with another cost; lines without an id may be equal."""
    nameless = {**LINES[0], "identity_line_item_id": ""}
    both = {"a.parquet": parquet([*LINES, nameless]), "b.parquet": parquet([line(1, "7.01"), nameless])}
    (raw,) = stored(cur2_export(tmp_path, both), tmp_path / "raw")
    assert raw.warnings == []
