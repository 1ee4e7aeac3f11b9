"""What a warehouse keeps to be quick, damaged: it is made again, or named where nothing can make it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.spoiled import COST_OF_THE_RUN, HOURS, Ledger

pytestmark = pytest.mark.slow

JUNK = ["{", "[]", "\x00\xff"]
COST = "select cast(sum(effective_cost_usd) as varchar) from mart_run_cost"


def kept(ledger: Ledger, pattern: str) -> list[Path]:
    files = list((ledger.root / "warehouse").glob(pattern))
    assert files, pattern
    return files


def costs_what_it_did(ledger: Ledger) -> None:
    assert ledger.run("query", COST, "--csv").out.splitlines()[1:] == [COST_OF_THE_RUN]


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("pattern", ["raw/*/manifests.json", "raw/*/*/*/delivery.json", "checks/**/*.json"])
def test_a_damaged_record_is_as_good_as_none(ledger: Ledger, pattern: str, junk: str) -> None:
    """The runs changed, so every record is looked at; the run costs what it did."""
    for file in kept(ledger, pattern):
        file.write_bytes(junk.encode("latin-1"))
    ledger.record({"event": "run_started", "run_id": "other", "at": "2026-07-02T00:00:00Z"})
    assert ledger.run("explain", "run", "good").code == 0
    built = ledger.run("build")
    assert built.code == 0, built.err
    costs_what_it_did(ledger)
    assert ledger.run("build").out.startswith("Nothing changed")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize("damage", [Path.unlink, cut], ids=["gone", "cut"])
def test_stored_lines_that_are_lost_are_fetched_again(ledger: Ledger, damage: Callable[[Path], None]) -> None:
    for file in kept(ledger, "raw/*/*/*/*.parquet"):
        damage(file)
    assert ledger.run("explain", "run", "good").code == 0
    for file in kept(ledger, "raw/*/*/*/*.parquet"):
        damage(file)
    ledger.record({"event": "run_started", "run_id": "other", "at": "2026-07-02T00:00:00Z"})
    built = ledger.run("build")
    assert built.code == 0, built.err
    costs_what_it_did(ledger)


def test_stored_lines_that_were_overwritten_are_named(ledger: Ledger) -> None:
    """As many bytes as before: only reading finds it, and the sentence names what to remove."""
    (file,) = kept(ledger, "raw/*/*/*/*.parquet")
    file.write_bytes(b"\x5a" * file.stat().st_size)
    failed = ledger.run("explain", "run", "good")
    assert failed.code == 3 and failed.error.startswith(f"{file} is damaged (")
    folder = re.search(r"remove its folder (\S+) ", failed.error)
    assert folder
    shutil.rmtree(folder[1])
    assert ledger.run("explain", "run", "good").code == 0


@pytest.mark.parametrize("pattern", ["raw/*/*/*/*.parquet", "raw/*/*/*/delivery.json"])
def test_a_month_that_only_the_raw_store_has_does_not_vanish(ledger: Ledger, pattern: str) -> None:
    """Buckets forget old months: July is delivered no more, and what is left of it here is damaged."""
    shutil.copytree(ledger.manifest.parent, ledger.manifest.parent.with_name("BILLING_PERIOD=2026-08"))
    (later,) = (ledger.manifest.parent.with_name("BILLING_PERIOD=2026-08")).iterdir()
    later.write_text(later.read_text().replace('"first"', '"august"'))
    ledger.manifest.unlink()
    (file,) = kept(ledger, pattern)
    cut(file)
    assert ledger.refused(3) == (
        f"{file.parent} is damaged and its export delivers 2026-07 no more; restore it from a copy, or delete it to go "
        "on without that month."
    )


def test_half_written_and_odd_things_in_the_raw_store_are_no_delivery(ledger: Ledger) -> None:
    month = kept(ledger, "raw/payer/2026-07")[0]
    (month / ".4b759d95.1.tmp").mkdir()
    (month.parent / "notes.txt").write_text("mine")
    ledger.restate(*HOURS[:5])
    assert ledger.run("build").code == 0
    costs_what_it_did(ledger)
