"""Publishing: readers see one build or the next, a kill costs nothing, two builds do not meet, nothing new is free."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import pytest
from support.clock import stop_clock
from support.commands import run_command
from support.ledgers import build_warehouse
from support.reader import published
from support.small_company import AUGUST, JULY, Company, found

from pipelines.base.console import Console
from pipelines.config.settings import load_settings
from pipelines.models.command import build_marts
from pipelines.warehouse.storage import Object
from pipelines.warehouse.storage_local import LocalStore

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent


@pytest.fixture
def company(built_company: Company, tmp_path: Path) -> Company:
    return built_company.copy(tmp_path)


def start_build(company: Company) -> subprocess.Popen:
    """`trainledger build` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines", "build", "--config", company.config],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_progress(build: subprocess.Popen) -> None:
    """Return when a build has printed that a part of its steps is done."""
    assert build.stderr is not None
    assert any(line.startswith("[") for line in build.stderr), "the build ended without progress"


def wait_for_tables(build: subprocess.Popen, company: Company, number: int) -> None:
    """Return when a build has committed as many tables, of those before it too."""
    while len(list(company.warehouse.glob("tables/*/*"))) < number:
        assert build.poll() is None, f"the build ended before table {number}"
        time.sleep(0.01)


def records(company: Company) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(company.warehouse.glob("publications/*.json"))]


def mart_bytes(company: Company) -> dict[str, bytes]:
    """The mart files of the newest publication, by name, as they lie on the disk."""
    tables = records(company)[-1]["tables"]
    files = [
        company.warehouse / "tables" / key / name
        for key, table in tables.items()
        if key.startswith("marts/")
        for name in table["files"]
    ]
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in files}


def test_a_reader_never_errs_and_never_sees_two_builds(company: Company) -> None:
    reader = subprocess.Popen(
        [sys.executable, TESTS / "support" / "reader.py", company.warehouse],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n", reader.communicate()[1]
    # As first delivered: 110.08 + 4 x 21.50, or 196.08.
    costs = [Decimal("196.08")]
    for month, rate in ((AUGUST, "20.00"), (JULY, "50.00"), (JULY, "55.04")):
        company.deliver(month, rate)
        build_warehouse(company.config)
        costs.append({"20.00": Decimal("190.08"), "50.00": Decimal("180.00"), "55.04": Decimal("190.08")}[rate])
        # Let the reader meet the publication it leads to.
        time.sleep(0.3)
    printed, errors = reader.communicate()
    assert (reader.returncode, errors) == (0, "")
    saw = json.loads(printed)
    assert saw["reads"] > 20
    # Every answer is of one publication, the marts agree in it, and publications come in order.
    answers = [(number, Decimal(runs), Decimal(ledger)) for number, runs, ledger in saw["seen"]]
    assert answers == [(number, cost, cost) for number, cost in enumerate(costs, start=1)]
    copies = [(Decimal(runs), Decimal(ledger)) for runs, ledger in saw["copies"]]
    assert copies == [(cost, cost) for cost in costs]


def test_a_build_killed_anywhere_comes_to_the_same_marts(built_company: Company, tmp_path: Path) -> None:
    company = found(tmp_path)
    seed = random.randrange(1_000_000)
    moment = random.Random(seed)
    # Each build gets some tables further than the one before, and is killed at no particular point of a step.
    for first, last in ((1, 15), (16, 30)):
        build = start_build(company)
        wait_for_tables(build, company, moment.randint(first, last))
        time.sleep(moment.uniform(0, 0.2))
        build.kill()
        build.communicate()
        assert records(company) == [], f"seed {seed}"
    build = start_build(company)
    _, errors = build.communicate()
    assert build.returncode == 0, f"seed {seed}: {errors}"
    (record,) = records(company)
    (undisturbed,) = records(built_company)
    assert {key: table["files"] for key, table in record["tables"].items()} == {
        key: table["files"] for key, table in undisturbed["tables"].items()
    }, f"seed {seed}"
    assert mart_bytes(company) == mart_bytes(built_company), f"seed {seed}"


def test_a_build_stopped_by_the_system_ends_as_by_ctrl_c(built_company: Company, tmp_path: Path) -> None:
    company = found(tmp_path)
    build = start_build(company)
    wait_for_tables(build, company, 5)
    build.terminate()
    _, errors = build.communicate()
    assert build.returncode == 130
    assert errors.splitlines()[-1] == "Error: Stopped; the next build continues from here."
    made = {path: path.stat().st_mtime_ns for path in company.warehouse.glob("tables/reference/*/*.parquet")}
    build_warehouse(company.config)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert mart_bytes(company) == mart_bytes(built_company)


def test_a_build_killed_after_its_publication_leaves_a_copy_that_is_repaired(company: Company) -> None:
    company.deliver(AUGUST, "20.00")
    copy = company.warehouse / "marts.duckdb"
    before = copy.read_bytes(), copy.stat().st_mtime_ns
    build_warehouse(company.config)
    # The kill came before the copy: it is still of the first publication.
    copy.write_bytes(before[0])
    os.utime(copy, ns=(before[1], before[1]))
    build_marts(load_settings(company.config), Console())
    assert len(records(company)) == 2
    from support.reader import copied

    assert set(copied(company.warehouse)) == {"190.0800000000"}


def test_of_two_builds_at_once_one_is_refused_with_who_holds_the_warehouse(company: Company) -> None:
    company.deliver(AUGUST, "20.00")
    first = start_build(company)
    wait_for_progress(first)
    # Held in the middle for as long as the second one takes.
    first.send_signal(signal.SIGSTOP)
    second = start_build(company)
    printed, error = second.communicate()
    first.send_signal(signal.SIGCONT)
    assert (second.returncode, printed) == (4, "")
    assert error.startswith(f"Error: {company.warehouse} is being built by process {first.pid} on ")
    assert error.count("\n") == 1 and "Traceback" not in error
    printed, error = first.communicate()
    assert first.returncode == 0, error
    assert printed.startswith("Published 2: ")
    # It is as if the second had never been: all is up to date.
    build_warehouse(company.config)
    assert len(records(company)) == 2


def test_a_build_of_nothing_new_looks_once_and_does_nothing(
    company: Company, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def state() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in company.root.rglob("*") if path.is_file()}

    listings, reads, before = [], [], state()
    plain_list, plain_open = LocalStore.list, LocalStore.open

    def list_counted(self: LocalStore, prefix: str = "") -> list[Object]:
        listings.append(self.location)
        return plain_list(self, prefix)

    def open_counted(self: LocalStore, key: str) -> BinaryIO:
        reads.append(self.location)
        return plain_open(self, key)

    monkeypatch.setattr(LocalStore, "list", list_counted)
    monkeypatch.setattr(LocalStore, "open", open_counted)
    assert build_marts(load_settings(company.config), Console()) is False
    assert capsys.readouterr().out == "Nothing changed since publication 1; nothing was done.\n"
    assert state() == before
    assert sorted(listings) == sorted(map(str, (company.export, company.events, company.warehouse)))
    # Of the sources nothing is read, of the warehouse only the publication record.
    assert reads == [str(company.warehouse)]


def test_earlier_publications_stay_readable(company: Company) -> None:
    first = records(company)[0]
    company.deliver(AUGUST, "20.00")
    build_warehouse(company.config)
    company.deliver(AUGUST, "19.00")
    build_warehouse(company.config)
    answers = [set(published(company.warehouse, record)) for record in records(company)]
    assert answers == [{"196.0800000000"}, {"190.0800000000"}, {"186.0800000000"}]
    assert records(company)[0] == first


def test_a_month_whose_files_are_gone_stays_as_it_was_delivered(company: Company) -> None:
    """Buckets forget old months; what was read once is kept, and rebuilt from what is kept."""
    for folder in ("data", "metadata"):
        shutil.rmtree(company.export / folder / f"BILLING_PERIOD={AUGUST}")
    company.deliver(JULY, "50.00")
    build_marts(load_settings(company.config), Console())
    record = records(company)[-1]
    assert record["number"] == 2
    assert [delivery["billing_period"] for delivery in record["inputs"]["deliveries"]] == [JULY, AUGUST]
    # 2 hours at 50.00 in July, 4 at 21.50 in August.
    assert set(published(company.warehouse, record)) == {"186.0000000000"}


def test_a_month_of_a_source_that_is_configured_no_more_leaves_the_marts(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Path(company.config)
    config.write_text(config.read_text().replace('name = "payer"', 'name = "other-payer"'))
    for folder in ("data", "metadata"):
        shutil.rmtree(company.export / folder / f"BILLING_PERIOD={AUGUST}")
    build_marts(load_settings(config), Console())
    record = records(company)[-1]
    assert [delivery["billing_period"] for delivery in record["inputs"]["deliveries"]] == [JULY]
    # Only the GPU run's month is left: 2 hours at 55.04. The other's 4 hours at 21.50 are reported.
    assert set(published(company.warehouse, record)) == {"110.0800000000"}
    printed = capsys.readouterr().err
    assert "published month no longer read: 1 row of detail_restated_figure" in printed
    assert f"billing month {AUGUST}, billed cost $86.00" in printed


def test_a_pruned_warehouse_answers_and_its_packs_verify(
    built_company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of four publications, the last of September and that of today stay; the former rests on a pruned one."""
    modules = ("pipelines.warehouse.publication", "pipelines.models.command", "pipelines.models.publish")
    clock = stop_clock(monkeypatch, datetime(2026, 9, 12, tzinfo=UTC), *modules)
    company = found(tmp_path)
    build_warehouse(company.config)
    clock.moment += timedelta(days=1)
    company.deliver(JULY, "50.00")
    build_warehouse(company.config)
    clock.moment += timedelta(days=1)
    company.deliver(AUGUST, "20.00")
    build_warehouse(company.config)
    clock.moment = datetime(2026, 11, 20, tzinfo=UTC)
    with company.config.open("a") as config:
        config.write("\n[policy]\ntarget_passes = 3\n")
    build_warehouse(company.config)
    words = ("--config", str(company.config))
    ended = run_command(capsys, "prune", "--dry-run", *words)
    assert ended.out.startswith("Would remove 2 publications and ") and len(records(company)) == 4
    ended = run_command(capsys, "prune", *words)
    assert (ended.code, ended.out.startswith("Removed 2 publications and ")) == (0, True), ended.err
    assert [one["number"] for one in records(company)] == [3, 4]
    total = "select sum(effective_cost_usd) as usd from mart_cost_ledger_daily"
    # July at 50 and August at 20, as in the readers' test.
    ended = run_command(capsys, "query", total, "--json", "--as-of", "2026-09-30", *words)
    assert Decimal(json.loads(ended.out)[0]["usd"]) == Decimal("180.00")
    ended = run_command(capsys, "query", total, "--as-of", "2026-09-12", *words)
    assert ended.code == 2 and "Publication 1, the newest at 2026-09-12 23:59 UTC, was pruned" in ended.error
    pack = tmp_path / "pack.zip"
    page = ["report", "--out", str(tmp_path / "page.html"), "--pack", str(pack), "--bundle", "--as-of", "2026-09-30"]
    assert run_command(capsys, *page, *words).code == 0
    ended = run_command(capsys, "verify", str(pack))
    assert ended.code == 0, ended.err
    with zipfile.ZipFile(pack) as archive:
        assert json.loads(archive.read("publication.json"))["number"] == 3
        assert any(name.startswith("before/") for name in archive.namelist())
    assert run_command(capsys, "check", *words).code == 0
    # A build prunes by itself where retention is configured; of two publications of a month the later one stays.
    clock.moment += timedelta(days=2)
    text = company.config.read_text()
    company.config.write_text(text.replace("[warehouse]", "[warehouse]\nretention = {days = 1}", 1))
    company.deliver(AUGUST, "21.50")
    build_warehouse(company.config)
    assert [one["number"] for one in records(company)] == [3, 5]
