"""The real webserver and the real daemon: the schedule fires, a run succeeds, the marts are new."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import duckdb
from support.ports import free_port
from support.small_company import AUGUST, Company

from pipelines.models.catalog import load_catalog

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def script(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}


@contextmanager
def service(name: str, *arguments: str, home: Path, config: Path) -> Iterator[subprocess.Popen]:
    """A Dagster service as its unit file starts it, stopped as systemd does; its words go to a log in `home`."""
    with (home / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [script(name), *arguments, "-m", "pipelines.definitions"],
            cwd=home,
            env=environment(home) | {"TRAINLEDGER_CONFIG": str(config)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
        finally:
            # Also what it started: a code server, a run.
            for _ in range(50):
                try:
                    os.killpg(process.pid, 0 if process.poll() is not None else signal.SIGKILL)
                except ProcessLookupError:
                    break
                time.sleep(0.1)
            else:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(look: Callable[[], T | None], seconds: float, home: Path, what: str) -> T:
    """What `look` finds, asked again until it finds it; the services' logs when it does not in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.5)
    logs = "\n".join(f"--- {log.name}\n{log.read_text()[-3_000:]}" for log in sorted(home.glob("*.log")))
    raise AssertionError(f"no {what} in {seconds:.0f} s\n{logs}")


def ask(port: int, query: str) -> dict | None:
    """The webserver's answer to a GraphQL query; None while it does not answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            content = json.load(answer)
    except OSError:
        return None
    assert "errors" not in content, content
    return content["data"]


def test_the_schedule_fires_and_the_marts_are_new(built_company: Company, tmp_path: Path) -> None:
    company, home, port = built_company.copy(tmp_path), tmp_path / "home", free_port()
    home.mkdir()
    shutil.copy(ROOT / "deploy" / "dagster.yaml", home)
    # The daemon's unit does this first: two services that make the same tables at once would fail.
    subprocess.run([script("dagster"), "instance", "migrate"], env=environment(home), check=True, capture_output=True)
    with company.config.open("a") as config:
        config.write('\n[schedule]\ncron = "* * * * *"\n')
    expected = company.deliver(AUGUST, "20.00")
    record = company.warehouse / "publications" / "000002.json"

    with (
        service("dagster-daemon", "run", home=home, config=company.config) as daemon,
        service("dagster-webserver", "-h", "127.0.0.1", "-p", str(port), home=home, config=company.config) as web,
    ):
        nodes = wait_for(
            lambda: ask(port, "{assetNodes {assetKey {path} kinds description isPartitioned}}"), 120, home, "answer"
        )["assetNodes"]
        assert {"/".join(node["assetKey"]["path"]) for node in nodes} >= {model.key for model in load_catalog().ordered}
        assert all(node["kinds"] and node["description"] for node in nodes)

        wait_for(record.is_file, 480, home, "publication")
        runs = "{runsOrError {... on Runs {results {status jobName tags {key value}}}}}"

        def ended() -> list[dict] | None:
            found = (ask(port, runs) or {"runsOrError": {"results": []}})["runsOrError"]["results"]
            return found if found and all(run["status"] in ("SUCCESS", "FAILURE") for run in found) else None

        (run,) = wait_for(ended, 60, home, "ended run")
        assert (run["status"], run["jobName"]) == ("SUCCESS", "refresh")
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        assert tags["dagster/schedule_name"] == "daily_refresh"
        assert tags["trainledger/months"] == f"{AUGUST}...{AUGUST}"
    assert (daemon.returncode, web.returncode) == (0, 0)

    with duckdb.connect(company.warehouse / "marts.duckdb", read_only=True) as marts:
        assert marts.sql("select sum(effective_cost_usd) from mart.mart_run_cost").fetchone() == (expected,)
    assert expected == Decimal("190.08")
