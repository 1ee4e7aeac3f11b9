"""Disks that are full or read-only, and a clock that is set back."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.clock import stop_clock
from support.commands import run_command
from support.forked import Commands
from support.ledgers import build_warehouse
from support.reader import copied
from support.small_company import AUGUST, JULY, Company, found

pytestmark = pytest.mark.slow

Mount = Callable[..., Path]
KIB = 1 << 10


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as running:
        yield running


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a small file system in memory, or changes one: `mount(name, "size=1m")`."""
    mounted: list[Path] = []

    def mount(name: str, options: str) -> Path:
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        again = "remount," if place in mounted else ""
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", again + options, "tmpfs", place], capture_output=True)
        if done.returncode:
            pytest.skip("only root can mount a small file system")
        if not again:
            mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=True)


def on(company: Company, warehouse: Path) -> tuple[str, str]:
    """The words that name the company's configuration, with its warehouse elsewhere."""
    config = company.root / "elsewhere.toml"
    config.write_text(company.config.read_text().replace('location = "warehouse"', f'location = "{warehouse}"'))
    return "--config", str(config)


def test_a_disk_that_fills_at_any_step(
    commands: Commands, built_company: Company, tmp_path: Path, mount: Mount, campaign: Campaign
) -> None:
    """A disk of a few kilobytes that grows after each failure: the build continues where the disk was full."""
    company, place = found(tmp_path / "company"), mount("small", "size=64k")
    size, config = 64 * KIB, on(company, place)
    for case in campaign.cases(40):
        built = commands.run("build", *config)
        if built.code == 0:
            break
        with case:
            assert built.code == 2, built.err
            assert built.error.startswith(f"{place}: the disk is full ("), built.err
            case.ended("exit 2")
        size += case.chance.randint(32, 384) * KIB
        mount("small", f"size={size}")
    # The tables are there; their copy needs room twice.
    mount("small", "size=64m")
    assert commands.run("build", *config).code == 0
    (record,) = (json.loads(path.read_text()) for path in place.glob("publications/*.json"))
    undisturbed = json.loads((built_company.warehouse / "publications/000001.json").read_text())
    assert record["tables"] == undisturbed["tables"]
    assert copied(place) == ("196.0800000000", "196.0800000000")


@pytest.mark.parametrize("options", ["size=4k", "size=64k"])
def test_a_folder_of_temporary_files_that_is_full(
    options: str, commands: Commands, tmp_path: Path, mount: Mount, campaign: Campaign
) -> None:
    company, full = found(tmp_path / "company"), mount("full", options)
    with pytest.raises(OSError, match="No space"):
        (full / "rest").write_bytes(bytes(1 << 20))
    config = ("--config", company.config)
    pack = ("--pack", company.root / "pack.zip")
    for words in (
        ("build", *config), ("report", "--out", company.root / "page.html", *pack, *config),
        ("report", "--pdf", company.root / "page.pdf", *config), ("query", "select * from mart_run_cost", *config),
        ("check", *config), ("doctor", *config), ("verify", company.root / "pack.zip"), ("prune", *config),
    ):  # fmt: skip
        ended = commands.run(*words, TMPDIR=str(full))
        assert ended.code in (0, 2), (words, ended.err)
        if ended.code:
            assert f"{full}" in ended.error and "full" in ended.error, ended.err
        campaign.counts["done" if ended.code == 0 else "exit 2"] += 1


def test_a_warehouse_on_a_disk_that_is_read_only(
    commands: Commands, built_company: Company, tmp_path: Path, mount: Mount, campaign: Campaign
) -> None:
    company, place = built_company.copy(tmp_path / "company"), mount("warehouse", "size=64m")
    shutil.copytree(company.warehouse, place, dirs_exist_ok=True)
    config = on(company, place)
    mount("warehouse", "ro")
    page = company.root / "page.html"
    for words in (
        ("build",), ("query", "select * from mart_run_cost"), ("report", "--out", page), ("check",),
        ("explain", "run", "gpu-1"),
    ):  # fmt: skip
        ended = commands.run(*words, *config)
        assert ended.code == 0, (words, ended.err)
        campaign.counts["done"] += 1
    examined = commands.run("doctor", *config)
    assert (examined.code, "1 fail" in examined.out) == (2, True), examined.out
    campaign.counts["exit 2"] += 1
    company.deliver(AUGUST, "20.00")
    for words in (("build",), ("prune",), ("prune", "--dry-run")):
        ended = commands.run(*words, *config)
        assert ended.code == 2 and "Read-only file system" in ended.error and str(place) in ended.error, ended.err
        campaign.counts["exit 2"] += 1
    mount("warehouse", "rw")
    assert commands.run("build", *config).code == 0
    assert copied(place) == ("190.0800000000", "190.0800000000")


def test_a_clock_that_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], campaign: Campaign
) -> None:
    """Four builds, of which two are dated before the one before them: the order and `--as-of` hold."""
    modules = ("pipelines.warehouse.publication", "pipelines.models.command")
    clock = stop_clock(monkeypatch, datetime(2026, 9, 12, tzinfo=UTC), *modules)
    company = found(tmp_path)
    total = "select sum(effective_cost_usd) as usd from mart_cost_ledger_daily"
    built = ((0, JULY, "55.04"), (-10, AUGUST, "20.00"), (-40, AUGUST, "19.00"), (20, AUGUST, "18.00"))
    for days, month, rate in built:
        clock.moment = datetime(2026, 9, 12, tzinfo=UTC) + timedelta(days=days)
        company.deliver(month, rate)
        build_warehouse(company.config)
        campaign.counts["done"] += 1
    records = [json.loads(path.read_text()) for path in sorted(company.warehouse.glob("publications/*.json"))]
    dates = [datetime.fromisoformat(record["published_at"]) for record in records]
    assert [record["number"] for record in records] == [1, 2, 3, 4]
    assert dates == sorted(set(dates))
    words = ("--json", "--config", str(company.config))
    # The third is the newest of 12 September: 110.08 and four hours at 19.00.
    result = run_command(capsys, "query", total, "--as-of", "2026-09-13", *words)
    assert json.loads(result.out) == [{"usd": "186.0800000000"}]
    # By a clock of last year nothing is old.
    clock.moment = datetime(2025, 1, 1, tzinfo=UTC)
    assert run_command(capsys, "prune", "--config", str(company.config)).out.startswith("Removed 0 publications ")
    assert len(list(company.warehouse.glob("publications/*.json"))) == 4
