"""A command imports what it runs on and no more: libraries cost more time than most commands take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.small_company import Company

from pipelines.config.settings import load_settings

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
RUN = """
import json, sys
from pipelines.cli import main
try:
    main()
finally:
    print("\\n" + json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def imported(cache: Path, *words: str | Path, code: int = 0) -> set[str]:
    """The heavy libraries that `trainledger WORDS`, which exits with `code`, has imported when it ends."""
    run = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == code, run.stderr
    return HEAVY & set(json.loads(run.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_needs_no_library(tmp_path: Path, command: str) -> None:
    assert imported(tmp_path, *command.split(), "--help") == set()


@pytest.mark.parametrize("words", ["none", "--none", "build --none", "report --month", "query a b", "export none"])
def test_a_wrong_argument_is_reported_before_any_library(tmp_path: Path, words: str) -> None:
    assert imported(tmp_path, *words.split(), code=2) == set()


@pytest.mark.parametrize("command", ["build", "check", "report", "query", "compare", "dashboard", "doctor", "notify"])
def test_a_wrong_configuration_is_reported_before_any_library(tmp_path: Path, command: str) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[warehouse\n")
    # Errors are printed in color.
    assert imported(tmp_path, command, "--config", tmp_path / "none.toml", code=2) <= {"rich"}
    assert imported(tmp_path, command, "--config", broken, code=2) <= {"rich"}


def test_reading_a_configuration_needs_no_engine(tmp_path: Path) -> None:
    config = tmp_path / "trainledger.toml"
    mail = '[notify.mail]\nhost = "localhost"\nsender = "a@example.com"\nrecipients = ["b@example.com"]\n'
    config.write_text(f'[notify]\nreports = ["savings"]\n{mail}[privacy]\npseudonyms = ["users"]\n')
    assert load_settings(config).notify.reports == ("savings",)
    # A build without a bill ends once its configuration is read.
    assert imported(tmp_path, "build", "--config", config, code=2) == {"pydantic_settings", "rich"}


def test_options_that_exclude_each_other_are_reported_before_any_library(tmp_path: Path) -> None:
    for command in ("query", "compare", "explain run r", "reprice"):
        assert imported(tmp_path, *command.split(), "--json", "--csv", code=2) <= {"rich"}, command


def test_a_query_and_an_unchanged_build_import_what_they_run_on(built_company: Company, tmp_path: Path) -> None:
    # The first one parses the models and contracts and keeps them for the others.
    imported(tmp_path, "build", "--config", built_company.config)
    query = imported(tmp_path, "query", "select 1", "--config", built_company.config)
    assert query <= {"duckdb", "numpy", "polars", "pyarrow", "pydantic_settings", "rich"}
    build = imported(tmp_path, "build", "--config", built_company.config)
    assert build <= {"polars", "pydantic_settings", "rich"}
    assert not OF_A_BUILD & (query | build)
