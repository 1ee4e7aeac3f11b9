"""Validation at its edges: many files, other tables, what cannot be read, and what must never happen."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from quality_data import BAD, GOOD, checked, contract, failures, stage
from support.lazily import Lazily

from pipelines.base.errors import CheckError, SourceError
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.validate import CheckResult

sqlalchemy, bridge = Lazily("sqlalchemy"), Lazily("pipelines.engine.sqlalchemy_bridge")


def test_the_rows_of_many_files_are_one_table(tmp_path: Path) -> None:
    files = [stage(tmp_path, GOOD.replace("'a'", f"'r{number}'"), name=str(number)) for number in range(40)]
    promised = contract(tmp_path)
    assert failures(checked(files, promised)) == {}
    failed = failures(checked([*files, files[7]], promised))
    assert failed["key_unique"].sample == [{"run_id": "r7", "row_count": 2}]


@pytest.mark.slow
def test_great_expectations_needs_no_scipy() -> None:
    """The image has none; nothing else does without it."""
    blocked = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'scipy': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from pipelines.models.gate import great_expectations\n"
        "assert great_expectations().expectations.ExpectColumnValuesToNotBeNull"
    )
    subprocess.run([sys.executable, "-c", blocked], check=True)


RULE = "error: {rows: {run_is_unknown: 'select run_id from {batch} as run anti join dim_run as known using (run_id)'}}"


def test_a_row_check_reads_other_tables(tmp_path: Path) -> None:
    known = stage(tmp_path, GOOD, name="dim_run")
    promised = contract(tmp_path, RULE)
    results = checked([stage(tmp_path, GOOD, BAD["early"])], promised, extra={"dim_run": [known]})
    assert failures(results)["run_is_unknown"].sample == [{"run_id": "early"}]


def test_a_check_that_cannot_be_computed_is_refused_by_name(tmp_path: Path) -> None:
    promised = contract(tmp_path, "warn: {rows: {misspelt: 'select run from {batch}'}}")
    with pytest.raises(
        CheckError, match=r'check misspelt of marts/mart_run cannot be computed \(Binder Error: .*"run"'
    ):
        checked([stage(tmp_path, GOOD)], promised)


def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SourceError, match=r"cut\.parquet is damaged \(Invalid Input Error: No magic bytes"):
        checked([tmp_path / "cut.parquet"], contract(tmp_path))


def test_results_survive_json(tmp_path: Path) -> None:
    query = "select *, [1.5] as list, 'nan'::double as nan, 'x'::blob as bytes from {batch}"
    rules = f'error:\n  not_null: [bucket]\n  rows: {{all_rows: "{query}"}}'
    results = checked([stage(tmp_path, *BAD.values())], contract(tmp_path, rules))
    assert len(failures(results)) == 2
    written = json.loads(json.dumps([asdict(result) for result in results], allow_nan=False))
    assert [CheckResult(**result) for result in written] == results


def test_nothing_leaves_the_machine_or_stays_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*where: object) -> None:
        raise AssertionError(f"a socket was opened to {where[1:]}")

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    rules = "error: {not_null: [bucket], rows: {late: 'select run_id from {batch} where not is_billed'}}"
    staged = stage(tmp_path, GOOD, *BAD.values())
    results = checked([staged], contract(tmp_path, rules))
    assert len(failures(results)) == 2
    assert list(home.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_small_table_takes_a_moment(tmp_path: Path) -> None:
    rules = "error: {not_null: [bucket], not_negative: [epoch_count]}\nwarn: {between: {saving_ratio: [0, 1]}}"
    promised, staged = contract(tmp_path, rules), stage(tmp_path, GOOD)
    checked([staged], promised)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        checked([staged], promised)
        taken.append(time.perf_counter() - start)
    # 0.06 s on two idle cores; the bound only catches work that grew by an order.
    assert min(taken) < 0.6


def test_great_expectations_reads_a_result_after_it_closed_the_connection(tmp_path: Path) -> None:
    with DuckDBEngine() as engine:
        engine.view("mart_run", [stage(tmp_path, GOOD)])
        database = bridge.database_of(engine)
        with database.connect() as connection:
            found = connection.execute(sqlalchemy.text("select run_id, effective_cost_usd from mart_run"))
        assert [str(value) for value in found.one()] == ["a", "10.5000000000"]
        assert sqlalchemy.inspect(database).get_view_names() == ["mart_run"]
        assert not sqlalchemy.inspect(database).has_table("mart_other")
