"""A command imports what it runs on and no more: libraries cost more time than most commands take."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.small_company import Company

from pipelines.base.parse_cache import cache_folder
from pipelines.config.settings import load_settings
from pipelines.models.revision import code_revision

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    *("altair", "boto3", "botocore", "dagster", "deltalake", "duckdb", "great_expectations", "jinja2"),
    *("numpy", "pandas", "polars", "pyarrow", "pydantic_settings", "pyspark", "rich", "scipy", "sqlalchemy"),
    *("sqlglot", "starlette", "typst", "vl_convert", "yaml"),
}
# What only a build that has something to do may import.
OF_A_BUILD = {"boto3", "dagster", "deltalake", "great_expectations", "scipy", "sqlalchemy", "sqlglot"}
COMMANDS = (
    *("demo", "build", "check", "report", "verify", "query", "compare", "reprice", "dashboard", "doctor", "notify"),
    *("explain", "explain run", "explain month", "export", "export focus"),
)
# Runs each command that a line of its input has in a process of its own, which starts as the command line does, and
# answers with its exit status.
STARTED = """
import json, os, sys, traceback
from pipelines.cli import main
for line in sys.stdin:
    words, cache, log = json.loads(line)
    child = os.fork()
    if child == 0:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1), os.dup2(file, 2)
        sys.argv, os.environ["XDG_CACHE_HOME"], code = ["-c", *words], cache, 0
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else bool(left.code)
        except BaseException:
            traceback.print_exc()
            code = 1
        print("\\n" + json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), flush=True)
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Imported = Callable[..., set[str]]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    """The heavy libraries that `trainledger WORDS`, which exits with `code`, has imported when it ends.

    No library is loaded before a command starts; to start Python for each would take longer than all of them.
    """
    log = tmp_path_factory.mktemp("start-up") / "log"
    command = [sys.executable, "-c", STARTED]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdin and started.stdout
        requests, answers = started.stdin, started.stdout

        def run(cache: Path, *words: str | Path, code: int = 0) -> set[str]:
            print(json.dumps([[*map(str, words)], str(cache), str(log)]), file=requests, flush=True)
            assert int(answers.readline()) == code, log.read_text()
            return HEAVY & set(json.loads(log.read_text().splitlines()[-1]))

        yield run
        requests.close()


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_needs_no_library(imported: Imported, tmp_path: Path, command: str) -> None:
    assert imported(tmp_path, *command.split(), "--help") == set()


@pytest.mark.parametrize("words", ["none", "--none", "build --none", "report --month", "query a b", "export none"])
def test_a_wrong_argument_is_reported_before_any_library(imported: Imported, tmp_path: Path, words: str) -> None:
    assert imported(tmp_path, *words.split(), code=2) == set()


@pytest.mark.parametrize(
    "words",
    [
        *("report --kind nope", "report --month 2026-13", "report --month 2026-07", "report --as-of nope"),
        *("query --as-of nope", "compare --basis nope", "explain day 2026-07-32", "explain month 2026-77"),
        *("explain invoice --month 2026-13", "verify nope.zip", "export focus --out o --month 2026-13"),
        "build --month 2026-13",
    ],
)
def test_a_wrong_value_is_reported_before_any_library(imported: Imported, tmp_path: Path, words: str) -> None:
    """The report without a kind is that of training, which covers all months."""
    assert imported(tmp_path, *words.split(), code=2) <= {"rich"}


def test_an_open_dashboard_is_refused_before_the_warehouse_is_opened(imported: Imported, tmp_path: Path) -> None:
    (config := tmp_path / "trainledger.toml").touch()
    words = ("dashboard", "--config", config, "--host", "0.0.0.0")
    assert imported(tmp_path, *words, code=2) <= {"pydantic_settings", "rich"}


@pytest.mark.parametrize("command", ["build", "check", "report", "query", "compare", "dashboard", "doctor", "notify"])
def test_a_wrong_configuration_is_reported_before_any_library(imported: Imported, tmp_path: Path, command: str) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[warehouse\n")
    # Errors are printed in color.
    assert imported(tmp_path, command, "--config", tmp_path / "none.toml", code=2) <= {"rich"}
    assert imported(tmp_path, command, "--config", broken, code=2) <= {"rich"}


def test_reading_a_configuration_needs_no_engine(imported: Imported, tmp_path: Path) -> None:
    config = tmp_path / "trainledger.toml"
    mail = '[notify.mail]\nhost = "localhost"\nsender = "a@example.com"\nrecipients = ["b@example.com"]\n'
    config.write_text(f'[notify]\nreports = ["savings"]\n{mail}[privacy]\npseudonyms = ["users"]\n')
    assert load_settings(config).notify.reports == ("savings",)
    # A build without a bill ends once its configuration is read.
    assert imported(tmp_path, "build", "--config", config, code=2) == {"pydantic_settings", "rich"}


def test_options_that_exclude_each_other_are_reported_before_any_library(imported: Imported, tmp_path: Path) -> None:
    for command in ("query", "compare", "explain run r", "reprice"):
        assert imported(tmp_path, *command.split(), "--json", "--csv", code=2) <= {"rich"}, command


def test_a_query_and_an_unchanged_build_import_what_they_run_on(imported: Imported, built_company: Company) -> None:
    # The models and contracts that this process parses are kept for all commands of its user.
    code_revision()
    folder = cache_folder()
    assert folder
    cache = folder.parent
    query = imported(cache, "query", "select 1", "--config", built_company.config)
    assert query <= {"duckdb", "numpy", "polars", "pyarrow", "pydantic_settings", "rich"}
    build = imported(cache, "build", "--config", built_company.config)
    assert build <= {"polars", "pydantic_settings", "rich"}
    assert not OF_A_BUILD & (query | build)
