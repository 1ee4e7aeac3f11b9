"""Pre-registrations that hold too little, contradict each other, or were changed after the fact."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.lab import Lab
from support.ledgers import ask, publish_tables

from pipelines.base.errors import MalformedError, SourceError
from pipelines.config.sources import ProofSource
from pipelines.ingest.inventory.registrations import REGISTRATION, RUN, misnamed, read_registrations
from pipelines.models.checks import failing_rows
from pipelines.models.contract import load_contract
from pipelines.models.records import RECORDS

COMPARISON, PROOF = "mart_silicon_comparison", "stg_proof__registration"
GOOD = """
[[registration]]
name = "first"
workload_id = "llama"
registered_on = 2026-06-20
target_metric = "eval_loss"
target_direction = "min"
quality_margin = 0.02
planned_runs = 3
cost_basis = "effective"
"""
LATER = GOOD.replace('"first"', '"second"').replace("06-20", "06-25")
EXCLUDED = """
[[exclusion]]
registration = "first"
run_id = "run-7"
reason = "bad node"
excluded_on = 2026-07-02
"""


def read(folder: Path, *texts: str, recorded: dict[str, str] | None = None):
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"{number}.toml").write_text(text)
    return read_registrations(ProofSource(registrations=str(folder)), recorded or {})


def lab(tables: Mapping[str, pl.DataFrame]) -> Lab:
    """A warehouse without runs."""
    return Lab({"2026-07": []}, {}, registrations={name: frame.to_dicts() for name, frame in tables.items()})


def test_a_registration_is_read_with_its_pairs_and_exclusions(tmp_path: Path) -> None:
    pair = 'pairs = [{gpu = "g-1", trainium = "t-1"}]\n'
    tables = read(tmp_path / "registered", GOOD + pair, EXCLUDED)
    row = tables[REGISTRATION].row(0, named=True)
    assert (row["registration"], row["registered_on"], row["quality_margin"]) == ("first", date(2026, 6, 20), 0.02)
    runs = tables[RUN].select("run_id", "pair_no", "accelerator_family", "reason").rows()
    assert runs == [("g-1", 1, "gpu", None), ("run-7", None, None, "bad node"), ("t-1", 1, "trainium", None)]


def test_nothing_is_registered_where_nothing_is_configured() -> None:
    assert all(table.is_empty() for table in read_registrations(ProofSource(), {}).values())


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        pytest.param([GOOD.replace("planned_runs = 3\n", "")], ["'planned_runs': it is missing"], id="missing field"),
        pytest.param([GOOD + "marign = 1\n"], ["[[registration]] first", "unknown key 'marign'"], id="misspelt field"),
        pytest.param([GOOD.replace("0.02", "-0.02")], ["'quality_margin'", "greater than or equal to 0"], id="margin"),
        pytest.param([GOOD.replace("0.02", "nan")], ["'quality_margin'", "finite"], id="margin that is no number"),
        pytest.param([GOOD.replace('"effective"', '"net"')], ["'cost_basis'", "'list', 'effective'"], id="basis"),
        pytest.param([GOOD.replace("2026-06-20", '"soon"')], ["'registered_on'", "day such as"], id="date in words"),
        pytest.param([GOOD.replace("2026-06-20", "20260620")], ["'registered_on'", "day such as"], id="date as number"),
        pytest.param([GOOD.replace("= 3", "= 0")], ["'planned_runs'"], id="no runs planned"),
        pytest.param(
            ["[registration]\nname = 1\n"], ["registration is not a list", "double brackets"], id="single brackets"
        ),
        pytest.param(["[[registration"], ["not valid TOML"], id="not TOML"),
        pytest.param([f"a{'.a' * 5_000} = 1\n{GOOD}"], ["0.toml is nested more than 100 levels deep"], id="too deep"),
        pytest.param([GOOD, GOOD], ["first is also in", "another name"], id="twice the same name"),
        pytest.param([GOOD, LATER], ["first and second", "workload llama", "contradict"], id="two of one workload"),
        pytest.param(
            [LATER.replace("cost_basis", 'supersedes = "first"\ncost_basis')],
            ["supersedes first, which no file holds"],
            id="supersedes nothing",
        ),
        pytest.param(
            [GOOD, LATER.replace("06-25", "06-20").replace("cost_basis", 'supersedes = "first"\ncost_basis')],
            ["of a later registered_on"],
            id="supersedes one of the same day",
        ),
        pytest.param([GOOD, EXCLUDED.replace('"first"', '"third"')], ["run-7 cites registration third"], id="uncited"),
        pytest.param(
            [EXCLUDED.replace('registration = "first"\n', "")], ["'registration': it is missing"], id="cites none"
        ),
        pytest.param([GOOD, EXCLUDED.replace('"bad node"', '""')], ["[[exclusion]] run-7", "'reason'"], id="no reason"),
        pytest.param([GOOD, EXCLUDED.replace("07-02", "06-02")], ["before the registration"], id="excluded before"),
        pytest.param([GOOD, EXCLUDED, EXCLUDED], ["run-7 occurs twice"], id="excluded twice"),
        pytest.param(
            [GOOD + 'pairs = [{gpu = "g", trainium = "t"}, {gpu = "g", trainium = "u"}]\n'],
            ["names run g in two pairs"],
            id="run in two pairs",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, texts: list[str], sentences: list[str]) -> None:
    with pytest.raises(MalformedError) as refused:
        read(tmp_path / "registered", *texts)
    for sentence in sentences:
        assert sentence in str(refused.value)


def test_a_file_that_is_not_read_for_its_name_is_named(tmp_path: Path) -> None:
    for name in ("a.toml", "b.toml.txt", "README.md"):
        (tmp_path / name).write_text("")
    warnings = misnamed(ProofSource(registrations=str(tmp_path)))
    assert warnings == [f"{tmp_path}: b.toml.txt is skipped; let its name end in .toml."]


def test_the_seal_is_of_the_content_not_of_how_the_file_writes_it(tmp_path: Path) -> None:
    seal = read(tmp_path / "a", GOOD)[REGISTRATION]["seal"][0]
    other = "# a note\n" + GOOD.replace("0.02", "2e-2")
    assert read(tmp_path / "b", other, EXCLUDED, recorded={"first": seal})[REGISTRATION]["seal"][0] == seal


def test_a_new_one_supersedes_the_old_that_stays(tmp_path: Path) -> None:
    seal = read(tmp_path / "a", GOOD)[REGISTRATION]["seal"][0]
    newer = LATER.replace("cost_basis", 'supersedes = "first"\ncost_basis').replace("0.02", "0.05")
    assert read(tmp_path / "a", GOOD, newer, recorded={"first": seal})[REGISTRATION].height == 2


def test_a_misspelled_workload_is_superseded_and_a_run_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """No run has "lama". Alone it is reported with its exclusion; the registration that supersedes it replaces both."""
    folder = tmp_path / "registered"
    wrong = GOOD.replace('"llama"', '"lama"')
    right = LATER.replace("cost_basis", 'supersedes = "first"\ncost_basis')
    contract = load_contract(f"marts/{COMPARISON}")
    checks = [check for check in contract.checks if check.name.startswith("regist")]
    for texts, name, workload in (
        ((wrong, EXCLUDED), "first", "lama"),
        ((wrong, right, EXCLUDED.replace('"first"', '"second"')), "second", "llama"),
    ):
        with lab(read(folder, *texts)) as made:
            found = [made.ask(failing_rows(check, COMPARISON), COMPARISON, *contract.reads) for check in checks]
        assert [[row[:2] for row in rows] for rows in found] == [[(name, workload)]] * 2
        assert found[1][0][2] == "run-7"


def test_a_registration_of_another_workload_leaves_the_superseded_one_in_force(tmp_path: Path) -> None:
    """Else a later registration of any workload could take an unwelcome one out of the way."""
    newer = LATER.replace("cost_basis", 'supersedes = "first"\ncost_basis')
    for text, is_in_force in ((newer, False), (newer.replace('"llama"', '"other"'), True)):
        with lab(read(tmp_path / "registered", GOOD, text)) as made:
            rows = made.ask(f"select registration, is_in_force from {PROOF} order by 1", PROOF)
        assert rows == [("first", is_in_force), ("second", True)]


def test_a_misspelled_one_between_two_of_a_workload_leaves_the_last_in_force(tmp_path: Path) -> None:
    """The second, of 25 June, misspells the workload of the first; the third corrects it."""
    typo = LATER.replace("cost_basis", 'supersedes = "first"\ncost_basis').replace('"llama"', '"lama"')
    last = GOOD.replace('"first"', '"third"').replace("06-20", "06-26")
    with lab(read(tmp_path / "a", GOOD, typo, last.replace("cost_basis", 'supersedes = "second"\ncost_basis'))) as made:
        rows = made.ask(f"select registration, is_in_force from {PROOF} order by 1", PROOF)
    assert rows == [("first", False), ("second", True), ("third", True)]


def test_what_was_published_when_a_build_first_read_it_stays_with_it(tmp_path: Path) -> None:
    """The first build has a run of "llama" on p5, which ended, and one on trn1 that has not. Next are read `first` and
    an exclusion, dated before both; then, with the run on trn1 ended and published, another exclusion.
    """
    folder, machines = tmp_path / "registered", ("p5.48xlarge", "trn1.32xlarge")
    folder.mkdir()
    start = datetime(2026, 7, 14, 10)
    gpu, trainium = (
        one_attempt(kind[:3], [f"i-0{kind[:3]}"], kind, start, timedelta(hours=1), workload_id="llama")
        for kind in machines
    )
    runs = write_events(tmp_path / "runs", [*gpu, *trainium[:3]])
    lines = [instance_hour("2026-07-14T10", f"i-0{kind[:3]}", kind, "55.04") for kind in machines]
    config = write_config(tmp_path, billing=write_export(tmp_path, {"2026-07": lines}), runs=runs, registrations=folder)
    publish_tables(config, ["fct_run", PROOF])
    (folder / "july.toml").write_text(GOOD + EXCLUDED)
    write_events(tmp_path / "runs", [*gpu, *trainium])
    publish_tables(config, ["fct_run", PROOF])
    (folder / "july.toml").write_text(GOOD + EXCLUDED + EXCLUDED.replace("run-7", "run-8"))
    builder = publish_tables(config, ["fct_run", PROOF])
    rows = ask(builder, f"select run_id, published_types, exclusion_published_types from {PROOF} order by 1").rows()
    named = [f"{kind}@2026-07-14" for kind in machines]
    assert rows == [("run-7", named[0], named[0]), ("run-8", named[0], " ".join(named))]


def test_results_stay_published_under_another_label_and_where_their_runs_are_gone(tmp_path: Path) -> None:
    """Runs of "elsewhere" are published and then removed. Registered next, dated back: "llama", whose runs are to start
    after it, and "other" with a list of one of them. Last, "lost", where the runs of the publications are lost.
    """
    folder, machines = tmp_path / "registered", ("p5.48xlarge", "trn1.32xlarge")
    folder.mkdir()
    start, hour = datetime(2026, 7, 14, 10), timedelta(hours=1)
    made = [one_attempt(kind[:3], [f"i-0{kind[:3]}"], kind, start, hour, workload_id="elsewhere") for kind in machines]
    runs = write_events(tmp_path / "runs", [*made[0], *made[1]])
    lines = [instance_hour("2026-07-14T10", f"i-0{kind[:3]}", kind, "55.04") for kind in machines]
    config = write_config(tmp_path, billing=write_export(tmp_path, {"2026-07": lines}), runs=runs, registrations=folder)
    publish_tables(config, ["fct_run"])
    write_events(tmp_path / "runs", one_attempt("next", ["i-0p5."], machines[0], start - timedelta(days=1), hour))
    publish_tables(config, ["fct_run"])
    listed = GOOD.replace('"first"', '"second"').replace('"llama"', '"other"')
    (folder / "july.toml").write_text(GOOD + listed + 'runs = {gpu = ["p5."], trainium = ["none"]}\n')
    builder = publish_tables(config, ["fct_run", PROOF])
    sql = f"select distinct registration, published_types from {PROOF} order by 1"
    named = [f"{kind}@2026-07-14" for kind in machines]
    assert ask(builder, sql).rows() == [("first", " ".join(named)), ("second", named[0])]
    for file in (tmp_path / "warehouse" / "tables" / "core" / "fct_run").glob("*.parquet"):
        file.unlink()
    (folder / "lost.toml").write_text(listed.replace('"second"', '"third"').replace('"other"', '"lost"'))
    day = builder.lake.publications.all()[-1].published_at.date()
    assert ask(publish_tables(config, ["fct_run", PROOF]), sql).rows()[2] == ("third", f"*@{day}")
    # A lost record is no reason to count registrations as if they came before all results.
    recorded = tmp_path / "warehouse" / "tables" / "raw" / "proof_registration"
    for file in recorded.glob("*.parquet"):
        file.unlink()
    with pytest.raises(SourceError, match=r"proof_registration has lost .*; restore it from a backup, or remove it"):
        publish_tables(config, ["fct_run", PROOF])
    shutil.rmtree(recorded)
    assert {row[1].partition(" ")[0] for row in ask(publish_tables(config, ["fct_run", PROOF]), sql).rows()} == {
        f"*@{day}"
    }


def test_a_registration_edited_or_removed_after_a_build_counts_as_it_was_recorded(tmp_path: Path) -> None:
    """The first build records the seal. A margin loosened after the runs, a file that is deleted or malformed, and an
    exclusion that goes once the results show whether it is wanted: each is named, changes nothing and stops no build.
    """
    folder = tmp_path / "registered"
    folder.mkdir()
    file = folder / "july.toml"
    export = write_export(tmp_path, {"2026-07": [instance_hour("2026-07-14T10", "i-0a", "p5.48xlarge", "55.04")]})
    config = write_config(tmp_path, billing=export, registrations=folder)
    sql = f"select registration, quality_margin, run_id, excluded_on from {PROOF} order by all"

    def built(text: str | None) -> tuple[list[tuple[object, ...]], str]:
        """The rows of the table, and the warning of reading."""
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        builder = publish_tables(config, [PROOF])
        return ask(builder, sql).rows(), " ".join(RECORDS["registrations"].warnings(builder.warehouse))

    kept = "Until then, only what earlier builds recorded of registrations counts."
    assert built("[[registration")[0] == []
    first = [("first", 0.02, None, None)]
    assert built(GOOD) == (first, "")
    loose = GOOD.replace("0.02", "0.2")
    for text, warning in (
        (loose, "registration first was changed after it was recorded"),
        (None, "Registration first was recorded and is missing"),
        (GOOD + "marign = 1", "unknown key 'marign'"),
        (GOOD + LATER, "contradict each other"),
    ):
        rows, warned = built(text)
        assert (rows, warned.endswith(kept)) == (first, True)
        assert warning in warned
    excluded = [("first", 0.02, "run-7", date(2026, 7, 2))]
    assert built(GOOD + EXCLUDED) == (excluded, "")
    for text, now in ((GOOD, "missing"), (GOOD + EXCLUDED.replace("07-02", "07-01"), "of 2026-07-01 now")):
        rows, warned = built(text)
        assert rows == excluded
        assert f"exclusion of run run-7 of 2026-07-02 was recorded for registration first and is {now}" in warned
    newer = LATER.replace("cost_basis", 'supersedes = "first"\ncost_basis')
    assert built(GOOD + newer) == ([("first", 0.02, None, None), ("second", 0.02, None, None)], "")
