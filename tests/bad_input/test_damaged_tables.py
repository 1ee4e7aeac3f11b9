"""Files of the warehouse that are lost, cut short, overwritten or not ours: named, made again, never shown as good."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from support.ledgers import build_with
from support.reader import copied
from support.spoiled import COST_OF_THE_RUN, HOURS, Ledger

from pipelines.base.errors import CheckError
from pipelines.config.settings import load_settings
from pipelines.models.build import Builder

pytestmark = pytest.mark.slow

SUM = "select sum(effective_cost_usd) as usd from mart_run_cost"
# Behind a header that is whole, where only reading finds it.
NOISE = b"\x5a\xa5" * 300


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def overwrite(file: Path) -> None:
    """As many bytes as before, some of them wrong."""
    held = file.read_bytes()
    file.write_bytes(held[:40] + NOISE + held[40 + len(NOISE) :])


def part(ledger: Ledger, key: str = "marts/mart_run_cost") -> Path:
    """The one file of a table."""
    (file,) = (ledger.root / "warehouse/tables" / key).glob("*.parquet")
    return file


def newest(ledger: Ledger) -> Path:
    return max((ledger.root / "warehouse/publications").glob("0*.json"))


@pytest.mark.parametrize("key", ["marts/mart_run_cost", "core/fct_charge", "core/fct_restatement"])
@pytest.mark.parametrize("damage", [Path.unlink, cut, empty])
def test_a_lost_or_cut_file_is_made_again(ledger: Ledger, damage: Callable[[Path], None], key: str) -> None:
    # The copied sources lie elsewhere, which is a change.
    assert ledger.run("build").code == 0
    file = part(ledger, key)
    before = file.read_bytes(), newest(ledger).read_bytes()
    damage(file)
    built = ledger.run("build")
    assert built.code == 0, built.err
    assert f"Publication 2: {file} is missing or truncated; it is rebuilt." in built.err
    # The same input gives the same file, so the publication stands as it was.
    assert (file.read_bytes(), newest(ledger).read_bytes()) == before
    assert json.loads(ledger.run("query", SUM, "--json").out) == [{"usd": COST_OF_THE_RUN}]
    assert ledger.run("build").out == "Nothing changed since publication 2; nothing was done.\n"


@pytest.mark.parametrize("key", ["marts/mart_run_cost", "core/fct_ledger_piece", "core/fct_restatement"])
def test_a_lost_file_does_not_stop_a_month_that_changed(ledger: Ledger, key: str) -> None:
    part(ledger, key).unlink()
    # The run's two hours of six at another rate: 2 x 50.00.
    ledger.restate(*({**line, "line_item_unblended_cost": "50.00"} for line in HOURS))
    assert ledger.run("build").code == 0
    assert json.loads(ledger.run("query", SUM, "--json").out) == [{"usd": "100.0000000000"}]
    assert ledger.run("check").code == 0
    # Its pack has what restatements start from: the files that the build read.
    before = json.loads(newest(ledger).read_bytes())["before"].items()
    assert all(
        (ledger.root / "warehouse/tables" / key / name).is_file() for key, held in before for name in held["files"]
    )


@pytest.mark.parametrize(
    "command",
    [["query", "select * from mart_run_cost"], ["report", "--out", "page.html"], ["explain", "run", "good"]],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("damage", [Path.unlink, cut, empty, overwrite])
def test_whoever_reads_a_damaged_file_names_it(
    ledger: Ledger, damage: Callable[[Path], None], command: list[str]
) -> None:
    file = part(ledger)
    damage(file)
    failed = ledger.run(*command)
    assert (failed.code, failed.out) == (3, "")
    assert re.fullmatch(
        rf"{re.escape(str(file))} is (missing|damaged \(.*\)); .*run `trainledger build`.*", failed.error
    )


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [("detail/detail_workload_cost", 1, "changed after publishing; remove it"), ("core/dim_run", 3, "is damaged (")],
)
def test_a_build_over_an_overwritten_file_names_it_and_makes_it_again_once_it_is_gone(
    ledger: Ledger, key: str, code: int, words: str
) -> None:
    file = part(ledger, key)
    overwrite(file)
    # The run's two hours stay as they were.
    ledger.restate(*HOURS[:5])
    failed = ledger.run("build")
    assert failed.code == code
    assert failed.error.startswith(f"{file} {words}")
    assert newest(ledger).name == "000001.json"
    file.unlink()
    assert ledger.run("build").code == 0
    assert json.loads(ledger.run("query", SUM, "--json").out) == [{"usd": COST_OF_THE_RUN}]


def test_nothing_is_published_over_a_mart_that_cannot_be_copied(ledger: Ledger) -> None:
    before = newest(ledger).name, copied(ledger.root / "warehouse")
    ledger.restate(*HOURS[:5])
    spoiled = []

    def spoil(builder: Builder, table: str) -> None:
        if table == "marts/mart_epoch_cost":
            spoiled.extend(builder.lake.files(table))
            cut(spoiled[0])

    with pytest.raises(CheckError, match="changed after publishing") as caught:
        build_with(load_settings(ledger.config), spoil)
    assert str(spoiled[0]) in str(caught.value)
    assert (newest(ledger).name, copied(ledger.root / "warehouse")) == before
    # The next build makes it anew and publishes.
    spoiled[0].unlink()
    assert ledger.run("build").code == 0
    assert newest(ledger).name == "000002.json"
    assert copied(ledger.root / "warehouse") == (COST_OF_THE_RUN, COST_OF_THE_RUN)


def test_a_mart_with_other_numbers_does_not_pass_the_check(ledger: Ledger) -> None:
    file = part(ledger)
    rows = pl.read_parquet(file)
    rows.with_columns(pl.col("^.*cost_usd$") * 2).cast(dict(rows.schema)).write_parquet(file)
    failed = ledger.run("check")
    assert failed.code == 1
    assert failed.error == (
        f"{file} of publication 1 changed after publishing; remove it and run `trainledger build`, "
        "which makes it again."
    )


@pytest.mark.parametrize("name", ["zzz.json", "backup.json", "000001 (copy).json"])
def test_what_else_lies_among_the_publications_is_passed_over(ledger: Ledger, name: str) -> None:
    (ledger.root / "warehouse/publications" / name).write_text("{}")
    assert json.loads(ledger.run("query", SUM, "--json").out) == [{"usd": COST_OF_THE_RUN}]
    ledger.restate(*HOURS[:5])
    assert ledger.run("build").code == 0
    assert ledger.run("doctor").code == 0
    assert "number 2 of" in ledger.run("doctor").out


def test_a_folder_where_the_copy_belongs_stops_no_publication(ledger: Ledger) -> None:
    place = ledger.root / "warehouse/marts.duckdb"
    place.unlink()
    place.mkdir()
    ledger.restate(*HOURS[:5])
    built = ledger.run("build")
    assert built.code == 0
    assert f"{place}, the copy for BI tools, is not of publication 2 (" in built.err
    assert newest(ledger).name == "000002.json"
    shutil.rmtree(place)
    assert ledger.run("build").code == 0
    assert place.is_file()
