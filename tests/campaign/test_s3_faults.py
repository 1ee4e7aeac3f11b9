"""S3 that fails: what a build does not notice, what it reports, and that the next one continues."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.campaign import Campaign, Case
from support.commands import run_command
from support.forked import Commands, Ended
from support.lake_builds import MONTHLY, WHOLE, build
from support.lake_places import Place, builds
from support.s3_company import BUCKET, deliver, settings
from support.s3_faults import FAULTS, Faults, Request, s3_faults
from support.small_company import AUGUST, RATE, Company, found

from pipelines.base.errors import TrainledgerError

pytestmark = pytest.mark.slow

SECONDS = 60


@pytest.fixture
def faults(s3: Any, s3_endpoint: str) -> Iterator[Faults]:
    with s3_faults(s3_endpoint) as faulty:
        yield faulty


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_store_of_small_tables(
    fault: str, faults: Faults, s3_endpoint: str, tmp_path: Path, campaign: Campaign
) -> None:
    """A tenth of the requests: the build ends, or fails by one sentence and the next one continues."""
    location = f"s3://{BUCKET}/small"
    steady = Place(location, tmp_path, s3_endpoint)
    for case in campaign.cases(8):
        # There are few lists.
        faults.at_random(case.chance.randrange(1 << 30), 0.5 if fault == "stale list" else 0.1, fault)
        with case:
            begun = time.monotonic()
            try:
                build(Place(location, tmp_path, faults.url).lake(str(case.number)), tmp_path / "staged", case.number)
                end = "unnoticed"
            except TrainledgerError as error:
                assert error.exit_code in (1, 3, 4) and str(error).endswith("."), str(error)
                end = f"exit {error.exit_code}"
            assert time.monotonic() - begun < SECONDS
            # Who failed holds the lease, which a healthy store lets it release.
            free(location, s3_endpoint)
            build(steady.lake(f"again-{case.number}"), tmp_path / "staged", case.number)
            current = steady.lake(f"read-{case.number}").publications.newest()
            assert current is not None
            shown = steady.lake(f"read-{case.number}").as_published(current)
            assert builds(shown.files(MONTHLY)) == builds(shown.files(WHOLE)) == [case.number]
            case.ended(end if faults.struck else "without a fault")


def as_in_a_folder(s3: Any, built_company: Company) -> None:
    """The publication on S3 names the files of one that was built undisturbed in a folder."""
    answer = s3.get_object(Bucket=BUCKET, Key="ledger/publications/000001.json")
    undisturbed = json.loads((built_company.warehouse / "publications/000001.json").read_text())
    assert json.loads(answer["Body"].read())["tables"] == undisturbed["tables"]


def free(location: str, endpoint: str) -> None:
    """Remove the lease of a build that could not release it; in life it expires after five minutes."""
    from pipelines.warehouse.lock import LEASE_KEY
    from pipelines.warehouse.stores import open_store

    open_store(location, endpoint_url=endpoint).delete(LEASE_KEY)


@pytest.mark.parametrize("place", ["export", "events", "ledger"])
@pytest.mark.parametrize("fault", ["500", "503", "reset", "truncation"])
def test_a_store_that_stays_faulty_is_reported_within_a_minute(
    fault: str, place: str, faults: Faults, s3: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    company = found(tmp_path / "company")
    deliver(company, s3)
    settings(company, faults.url)
    # An answer without a body is none to be cut.
    below = (f"{BUCKET}/{place}", f"prefix={place}")
    faults.begin(lambda request: fault if any(path in request.path for path in below) else None)
    begun = time.monotonic()
    failed = run_command(capsys, "build", "--config", str(company.config))
    assert failed.code == 3, failed.err
    assert f"s3://{BUCKET}/{place}" in failed.error
    assert time.monotonic() - begun < SECONDS


def test_a_whole_build_on_a_faulty_store(
    faults: Faults, s3: Any, s3_endpoint: str, tmp_path: Path, built_company: Company, campaign: Campaign
) -> None:
    """Three in a hundred requests of a whole build fail; its marts are those of a folder."""
    company = found(tmp_path / "company")
    deliver(company, s3)
    settings(company, faults.url)
    with Commands(HOME=str(tmp_path / "home")) as commands:
        for case in campaign.cases(3):
            faults.at_random(case.chance.randrange(1 << 30), 0.03)
            with case:
                ended = commands.run("build", "--config", company.config)
                case.ended("unnoticed" if ended.code == 0 else f"exit {ended.code}")
                assert ended.code == 0 or ended.error
                free(f"s3://{BUCKET}/ledger", s3_endpoint)
                faults.begin()
                assert commands.run("build", "--config", company.config).code == 0
                as_in_a_folder(s3, built_company)


def dying(faults: Faults, commands: Commands, case: Case, last: int, *words: object) -> Ended:
    """Runs a command that is killed at one of its next requests: before it is carried out, or before its answer."""
    at, is_before, victim = case.chance.randint(1, last), case.chance.random() < 0.5, [0]

    def strike(request: Request) -> None:
        if request.number >= at and victim[0]:
            with suppress(ProcessLookupError):
                os.kill(victim.pop(0), signal.SIGKILL)
            victim.append(0)

    def before(request: Request) -> None:
        if is_before:
            strike(request)

    faults.begin(before, strike)
    victim[0] = commands.start(*words)
    return commands.end()


def test_builds_of_small_tables_that_are_killed_on_s3(faults: Faults, tmp_path: Path, campaign: Campaign) -> None:
    """Of every publication a reader sees the rows of one build; who was killed holds the lease."""
    location = f"s3://{BUCKET}/small"
    with Commands() as commands:
        for case in campaign.cases(50):
            words = (location, tmp_path / "cache", case.number, case.number, "", faults.url)
            with case:
                ended = dying(faults, commands, case, 40, "support.lake_builds", *words)
                faults.begin()
                assert ended.code in (0, -signal.SIGKILL), ended.err
                lake = Place(location, tmp_path, faults.url).lake(f"read-{case.number}")
                current = lake.publications.newest()
                if current:
                    shown = lake.as_published(current)
                    assert len({*builds(shown.files(MONTHLY)), *builds(shown.files(WHOLE))}) == 1
                if ended.code:
                    again = commands.run("support.lake_builds", *words)
                    assert "is being built by process" in again.err or again.code == 0, again.err
                free(location, faults.url)
                case.ended("killed" if ended.code else "done")


def test_a_build_that_is_killed_on_s3_continues(
    faults: Faults, s3: Any, tmp_path: Path, built_company: Company, campaign: Campaign
) -> None:
    company = found(tmp_path / "company")
    deliver(company, s3)
    settings(company, faults.url)
    build = ("build", "--config", company.config)
    with Commands(HOME=str(tmp_path / "home")) as commands:
        for case in campaign.cases(12):
            with case:
                ended = dying(faults, commands, case, 200, *build)
                assert ended.code in (0, -signal.SIGKILL), ended.err
                free(f"s3://{BUCKET}/ledger", faults.url)
                case.ended("killed" if ended.code else "done")
        faults.begin()
        assert commands.run(*build).code == 0
    as_in_a_folder(s3, built_company)


def stored(s3: Any) -> dict[str, bytes]:
    """The objects of the warehouse but the lease, and Delta's logs, whose checkpoints may come in more steps."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="ledger/")
    keys = [item["Key"] for page in pages for item in page.get("Contents", ()) if "_delta_log" not in item["Key"]]
    return {
        key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys if not key.startswith("ledger/locks/")
    }


def test_packs_and_prunes_that_are_killed_on_s3(faults: Faults, s3: Any, tmp_path: Path, campaign: Campaign) -> None:
    """The pack is the new one or the old one; of two publications one is pruned, and the kept one stays whole."""
    company, pack = found(tmp_path / "company"), tmp_path / "pack.zip"
    config = ("--config", company.config)
    with Commands(HOME=str(tmp_path / "home")) as commands:
        for rate in (RATE, "20.00"):
            company.deliver(AUGUST, rate)
            deliver(company, s3)
            settings(company, faults.url)
            assert commands.run("build", *config).code == 0
        report = ("report", "--out", tmp_path / "page.html", "--pack", pack, *config)
        faults.begin()
        assert commands.run(*report).code == 0
        requests, whole = faults.count, pack.read_bytes()
        for case in campaign.cases(10):
            pack.write_bytes(b"a pack of another day")
            with case:
                ended = dying(faults, commands, case, requests, *report)
                assert ended.code in (0, -signal.SIGKILL), ended.err
                assert pack.read_bytes() in (b"a pack of another day", whole)
                case.ended("pack killed" if ended.code else "pack written")
        faults.begin()
        assert commands.run(*report).code == 0
        assert pack.read_bytes() == whole

        for number in (1, 2):
            key = f"ledger/publications/{number:06d}.json"
            record = json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
            text = json.dumps(record | {"published_at": f"2026-02-0{number} 06:00:00+00:00"})
            s3.put_object(Bucket=BUCKET, Key=key, Body=text.encode())
        before = stored(s3)
        faults.begin()
        assert commands.run("prune", *config).code == 0
        requests, pruned, is_new = faults.count, stored(s3), True
        assert {key for key in pruned if "publications/0" in key} == {"ledger/publications/000002.json"}
        for case in campaign.cases(10):
            for key, body in before.items() if is_new else ():
                s3.put_object(Bucket=BUCKET, Key=key, Body=body)
            with case:
                ended = dying(faults, commands, case, requests, "prune", *config)
                assert ended.code in (0, -signal.SIGKILL), ended.err
                now = stored(s3)
                # What only the first shows may be gone or not; the note of what was pruned is new.
                assert (pruned.items() & before.items()) <= now.items() <= (pruned.items() | before.items())
                free(f"s3://{BUCKET}/ledger", faults.url)
                if is_new := ended.code == 0:
                    assert now == pruned
                case.ended("prune killed" if ended.code else "prune done")
        faults.begin()
        assert commands.run("prune", *config).code == 0
        assert stored(s3) == pruned
