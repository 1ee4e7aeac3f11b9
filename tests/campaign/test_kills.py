"""Commands killed anywhere: the next one continues, and in the end all is as if nothing had happened."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.campaign import Campaign, Case
from support.forked import Commands, Ended, Kill
from support.reader import copied
from support.small_company import AUGUST, JULY, Company, found

pytestmark = pytest.mark.slow

# Of the small company's runs in mart_run_cost and in the ledger: 110.08 + 4 x 21.50.
COSTS = ("196.0800000000", "196.0800000000")
PACK = b"a pack of another day"


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as running:
        yield running


def kill(chance: random.Random, first: int, last: int, phase: str = "", delay: float = 0.02) -> Kill:
    """At one of the next changes of a file: just before it, or a little later, where a library may be at work."""
    return Kill(chance.randint(first, last), phase, chance.choice((None, chance.uniform(0, delay))))


def records(company: Company) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(company.warehouse.glob("publications/*.json"))]


def is_whole(company: Company, record: dict) -> bool:
    """Whether every file that a publication names lies there with its bytes."""
    return all(
        (company.warehouse / "tables" / key / name).stat().st_size == size
        for key, table in record["tables"].items()
        for name, size in zip(table["files"], table["bytes"], strict=True)
    )


def left_over(company: Company) -> list[Path]:
    """Unfinished files after a build."""
    return [path for path in (company.warehouse / "staging").rglob("*") if path.is_file()]


def died(case: Case, ended: Ended) -> bool:
    """Count a kill by where it struck; False where the command was done before."""
    if ended.code >= 0:
        assert ended.code == 0, ended.err
        case.ended("done before")
        return False
    case.ended(ended.died_in)
    return True


def as_undisturbed(company: Company, undisturbed: Company) -> None:
    (record,), (other,) = records(company), records(undisturbed)
    assert {key: table["files"] for key, table in record["tables"].items()} == {
        key: table["files"] for key, table in other["tables"].items()
    }
    assert is_whole(company, record)
    assert copied(company.warehouse) == COSTS
    assert left_over(company) == []


def test_a_build_that_is_killed_continues(
    commands: Commands, built_company: Company, tmp_path: Path, campaign: Campaign
) -> None:
    """Four builds of 30 kills each: ten while the bill is read, then twenty from table to table."""
    company, build = found(tmp_path), ("build", "--config", tmp_path / "trainledger.toml")
    for case in campaign.cases(120):
        if case.number % 30 == 0:
            shutil.rmtree(company.warehouse, ignore_errors=True)
        first, last = (1, 10) if case.number % 30 < 10 else (20, 120)
        with case:
            if died(case, commands.run(*build, kill=kill(case.chance, first, last))):
                assert all(is_whole(company, record) for record in records(company))
            if case.number % 30 == 29:
                assert commands.run(*build).code == 0
                as_undisturbed(company, built_company)


def test_a_month_job_that_is_killed_leaves_the_other_unharmed(
    commands: Commands, built_company: Company, tmp_path: Path, campaign: Campaign
) -> None:
    """Two processes at a time: July is killed somewhere, August ends well, and a build publishes both."""
    company = found(tmp_path)
    config = ("--config", company.config)
    with Commands() as others:
        for case in campaign.cases(20):
            shutil.rmtree(company.warehouse, ignore_errors=True)
            with case:
                others.start("build", "--month", AUGUST, *config)
                died(case, commands.run("build", "--month", JULY, *config, kill=kill(case.chance, 1, 150)))
                august = others.end()
                assert august.code == 0, august.err
                assert not records(company)
                assert commands.run("build", *config).code == 0
                as_undisturbed(company, built_company)


def unpublish(company: Company) -> None:
    shutil.rmtree(company.warehouse / "publications", ignore_errors=True)
    (company.warehouse / "marts.duckdb").unlink(missing_ok=True)


def test_a_publication_that_is_killed_is_there_or_not(
    commands: Commands, built_company: Company, tmp_path: Path, campaign: Campaign
) -> None:
    company, build = built_company.copy(tmp_path), ("build", "--config", tmp_path / "trainledger.toml")
    changes = 0
    is_new = True
    for case in campaign.cases(50):
        if is_new:
            unpublish(company)
        if not changes:
            changes = commands.run(*build, kill=Kill(-1)).changes["publication"]
            unpublish(company)
        with case:
            is_new = not died(case, commands.run(*build, kill=kill(case.chance, 1, changes, "publication")))
            assert all(is_whole(company, record) for record in records(company))
            if is_new:
                as_undisturbed(company, built_company)


def test_a_pack_that_is_killed_is_the_new_or_the_old(
    commands: Commands, built_company: Company, tmp_path: Path, campaign: Campaign
) -> None:
    company, pack = built_company.copy(tmp_path), tmp_path / "pack.zip"
    report = ("report", "--out", tmp_path / "page.html", "--pack", pack, "--config", company.config)
    undisturbed = commands.run(*report, kill=Kill(-1))
    assert undisturbed.code == 0, undisturbed.err
    whole, changes = pack.read_bytes(), sum(undisturbed.changes.values())
    for case in campaign.cases(30):
        pack.write_bytes(PACK)
        with case:
            died(case, commands.run(*report, kill=kill(case.chance, 1, changes, delay=0.5)))
            assert pack.read_bytes() in (PACK, whole)
    assert commands.run(*report).code == 0
    assert pack.read_bytes() == whole
    assert commands.run("verify", pack).code == 0


def test_a_prune_that_is_killed_continues(
    commands: Commands, built_company: Company, tmp_path: Path, campaign: Campaign
) -> None:
    """Two publications, the first of an earlier day of the same month: it goes, the second stays whole."""
    company = built_company.copy(tmp_path / "once")
    company.deliver(AUGUST, "20.00")
    config = ("--config", company.config)
    assert commands.run("build", *config).code == 0
    for number, record in enumerate(records(company), start=1):
        path = company.warehouse / f"publications/{number:06d}.json"
        path.write_text(json.dumps(record | {"published_at": f"2026-02-0{number} 06:00:00+00:00"}))
    before = tmp_path / "before"
    shutil.copytree(company.warehouse, before)
    undisturbed = commands.run("prune", *config, kill=Kill(-1))
    assert undisturbed.code == 0, undisturbed.err
    pruned, is_new, changes = state(company), True, sum(undisturbed.changes.values())
    assert [one["number"] for one in records(company)] == [2]
    for case in campaign.cases(40):
        if is_new:
            shutil.rmtree(company.warehouse)
            shutil.copytree(before, company.warehouse)
        with case:
            is_new = not died(case, commands.run("prune", *config, kill=kill(case.chance, 1, changes)))
            assert all(is_whole(company, record) for record in records(company))
            if is_new:
                assert state(company) == pruned


def state(company: Company) -> set[str]:
    """Every file of a warehouse but those of Delta's logs, whose checkpoints may come in more steps."""
    return {
        path.relative_to(company.warehouse).as_posix()
        for path in company.warehouse.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts and not path.name.endswith(".tmp")
    }
