"""The real webserver and the real daemon: the schedule fires, a run succeeds, the marts are new.

Once as the systemd units start them, over a folder and SQLite, and once as compose.yaml does, over S3 and PostgreSQL.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import duckdb
import pytest
import yaml
from support.ports import free_port
from support.small_company import AUGUST, JULY, Company, found
from support.two_payers import two_payers

from pipelines.models.catalog import load_catalog

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def script(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def environment(home: Path, config: Path, **more: str) -> dict[str, str]:
    named = {"DAGSTER_HOME": str(home), "TRAINLEDGER_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "NO_PROXY": "127.0.0.1"} | named | more


@contextmanager
def service(name: str, *arguments: str, home: Path, env: dict[str, str]) -> Iterator[subprocess.Popen]:
    """A Dagster service as its unit file starts it, stopped as systemd does; its words go to a log in `home`."""
    with (home / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [script(name), *arguments],
            cwd=home,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=90)
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
    """What `look` finds, repeated until it finds it; the services' logs when it does not in time."""
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


def ended_runs(port: int) -> list[dict] | None:
    """The runs that the webserver shows, once there are some and all have ended."""
    query = "{runsOrError {... on Runs {results {status jobName tags {key value}}}}}"
    runs = (ask(port, query) or {"runsOrError": {"results": []}})["runsOrError"]["results"]
    return runs if runs and all(run["status"] in ("SUCCESS", "FAILURE") for run in runs) else None


def test_the_schedule_fires_and_the_marts_are_new(built_company: Company, tmp_path: Path) -> None:
    company, home, port = built_company.copy(tmp_path), tmp_path / "home", free_port()
    home.mkdir()
    shutil.copy(ROOT / "deploy" / "dagster.yaml", home)
    # The daemon's unit does this first: two services that make the same tables at once would fail.
    env, module = environment(home, company.config), ("-m", "pipelines.definitions")
    subprocess.run([script("dagster"), "instance", "migrate"], env=env, check=True, capture_output=True)
    with company.config.open("a") as config:
        config.write('\n[schedule]\ncron = "* * * * *"\n')
    expected = company.deliver(AUGUST, "20.00")
    record = company.warehouse / "publications" / "000002.json"

    with (
        service("dagster-daemon", "run", *module, home=home, env=env) as daemon,
        service("dagster-webserver", "-h", "127.0.0.1", "-p", str(port), *module, home=home, env=env) as web,
    ):
        nodes = wait_for(
            lambda: ask(port, "{assetNodes {assetKey {path} kinds description isPartitioned}}"), 120, home, "answer"
        )["assetNodes"]
        assert {"/".join(node["assetKey"]["path"]) for node in nodes} >= {model.key for model in load_catalog().ordered}
        assert all(node["kinds"] and node["description"] for node in nodes)

        wait_for(record.is_file, 480, home, "publication")
        (run,) = wait_for(lambda: ended_runs(port), 60, home, "ended run")
        assert (run["status"], run["jobName"]) == ("SUCCESS", "refresh")
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        assert tags["dagster/schedule_name"] == "daily_refresh"
        assert tags["trainledger/months"] == f"{AUGUST}...{AUGUST}"
    assert (daemon.returncode, web.returncode) == (0, 0)

    with duckdb.connect(company.warehouse / "marts.duckdb", read_only=True) as marts:
        assert marts.sql("select sum(effective_cost_usd) from mart.mart_run_cost").fetchone() == (expected,)
    assert expected == Decimal("190.08")


@pytest.fixture
def postgres_port() -> Iterator[int]:
    """A PostgreSQL server with the user `dagster`, its password `secret` and its database."""
    pytest.importorskip("dagster_postgres", reason="needs the postgres extra")
    if not shutil.which("initdb"):
        pytest.skip("needs PostgreSQL: initdb and postgres on the path")
    # It refuses to run as root.
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        (folder / "password").write_text("secret")
        if user:
            shutil.chown(folder, "postgres")
            shutil.chown(folder / "password", "postgres")
        data = folder / "data"
        words = ["initdb", "-D", data, "-U", "dagster", "-A", "scram-sha-256", "--pwfile", folder / "password"]
        subprocess.run(words, check=True, capture_output=True, cwd=folder, **user)
        words = ["postgres", "-D", data, "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"]
        server = subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL, **user)
        try:
            words = ["createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "dagster", "dagster"]
            for _ in range(600):
                made = subprocess.run(words, env=os.environ | {"PGPASSWORD": "secret"}, capture_output=True)
                if made.returncode == 0:
                    break
                time.sleep(0.1)
            yield port
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
def test_the_services_of_the_compose_file_publish_on_s3(postgres_port: int, s3_endpoint: str, tmp_path: Path) -> None:
    company, home, port = found(tmp_path / "company"), tmp_path / "home", free_port()
    with company.config.open("a") as config:
        config.write('\n[schedule]\ncron = "* * * * *"\n')
    home.mkdir()
    # As the Containerfile joins them.
    parts = (ROOT / "deploy" / name for name in ("dagster.yaml", "dagster-postgres.yaml"))
    (home / "dagster.yaml").write_text("".join(part.read_text() for part in parts))
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    here = {
        "DAGSTER_PG_HOST": "127.0.0.1",
        "DAGSTER_PG_PORT": str(postgres_port),
        "DAGSTER_PG_PASSWORD": "secret",
        "TRAINLEDGER_WAREHOUSE__ENDPOINT_URL": s3_endpoint,
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HOME": str(home),
    }
    variables = services["daemon"]["environment"]
    assert here.keys() - {"HOME"} < variables.keys()
    env = environment(home, company.config, **(variables | here | {"DAGSTER_HOME": str(home)}))
    env["TRAINLEDGER_CONFIG"] = str(company.config)

    setup = services["setup"]
    for _ in range(2):
        # Compose starts it each time.
        words = [*setup["entrypoint"], setup["command"][0].replace("$$", "$")]
        done = subprocess.run(words, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    daemon, web = services["daemon"]["entrypoint"], services["webserver"]["entrypoint"]
    web = [{"3000": str(port), "0.0.0.0": "127.0.0.1"}.get(word, word) for word in web]
    with (
        service(*daemon, home=home, env=env) as daemon,
        service(*web, home=home, env=env) as web,
    ):
        runs = wait_for(lambda: ended_runs(port), 900, home, "ended run")
        # A tick that looks while the first run publishes asks for a second one, which finds nothing new.
        assert {(run["status"], run["jobName"]) for run in runs} == {("SUCCESS", "refresh")}
    assert (daemon.returncode, web.returncode) == (0, 0)
    # Nothing of the history lies in files.
    assert not list(home.rglob("*.db"))

    words = [sys.executable, "-m", "pipelines", "query", "--csv", "select sum(effective_cost_usd) from mart_run_cost"]
    answer = subprocess.run(words, env=env, capture_output=True, text=True)
    # Two hours at 55.04 and four at 21.50.
    assert Decimal(answer.stdout.split()[1]) == Decimal("196.08"), answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "keys"),
    [("month", (JULY, AUGUST)), ("source_month", (f"{JULY}|payer", f"{JULY}|other"))],
)
def test_jobs_run_side_by_side_with_their_history_in_postgresql(
    job: str, keys: tuple[str, str], postgres_port: int, tmp_path: Path
) -> None:
    """Two runs of a job at a time, by the daemon; the build then publishes what they made."""
    company, home, port = two_payers(tmp_path / "company", "apart"), tmp_path / "home", free_port()
    home.mkdir()
    parts = [(ROOT / "deploy" / name).read_text() for name in ("dagster.yaml", "dagster-postgres.yaml")]
    (home / "dagster.yaml").write_text("".join(parts).replace("max_concurrent_runs: 1", "max_concurrent_runs: 2"))
    server = {"DAGSTER_PG_HOST": "127.0.0.1", "DAGSTER_PG_PORT": str(postgres_port), "DAGSTER_PG_DB": "dagster"}
    server |= {"DAGSTER_PG_USER": "dagster", "DAGSTER_PG_PASSWORD": "secret"}
    env, module = environment(home, company.config, **server), ("-m", "pipelines.definitions")
    subprocess.run([script("dagster"), "instance", "migrate"], env=env, check=True, capture_output=True)
    with (
        service("dagster-daemon", "run", *module, home=home, env=env),
        service("dagster-webserver", "-h", "127.0.0.1", "-p", str(port), *module, home=home, env=env),
    ):
        wait_for(lambda: ask(port, "{version}"), 120, home, "answer")
        words = ["job", "backfill", *module, "-j", job, "--partitions", ",".join(keys), "--noprompt"]
        subprocess.run([script("dagster"), *words], env=env, check=True, capture_output=True)

        def both_ended() -> list[dict] | None:
            launched = "stats {... on RunStatsSnapshot {launchTime}}"
            query = f"{{runsOrError {{... on Runs {{results {{status jobName endTime {launched}}}}}}}}}"
            runs = (ask(port, query) or {"runsOrError": {"results": []}})["runsOrError"]["results"]
            return runs if len(runs) == 2 and all(run["endTime"] for run in runs) else None

        runs = wait_for(both_ended, 300, home, "ended run of two parts")
    assert {(run["status"], run["jobName"]) for run in runs} == {("SUCCESS", job)}
    # The second is launched before the first has ended; it may take longer to start than the first to end.
    assert max(run["stats"]["launchTime"] for run in runs) < min(run["endTime"] for run in runs)
    assert not (company.warehouse / "publications").exists()
    words = [sys.executable, "-m", "pipelines", "build"]
    assert subprocess.run(words, env=env, capture_output=True).returncode == 0
    with duckdb.connect(company.warehouse / "marts.duckdb", read_only=True) as marts:
        # Two hours at 55.04 and four at 21.50.
        total = marts.sql("select sum(effective_cost_usd) from mart.mart_run_cost").fetchone()
    assert total == (Decimal("196.08"),)

    # Assets of two months, each in a process of its own, by two runs at a time.
    env["PYTHONPATH"] = f"{ROOT / 'tests'}{os.pathsep}{ROOT}"
    words = [sys.executable, "-m", "support.month_assets"]
    started = [
        subprocess.Popen([*words, month], env=env, stderr=subprocess.PIPE, text=True) for month in (JULY, AUGUST)
    ]
    for run in started:
        _, printed = run.communicate(timeout=300)
        assert run.returncode == 0, printed[-3_000:]
