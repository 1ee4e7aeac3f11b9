"""Jobs of two payers' month side by side, each made from its own delivery, and the build that publishes what they made.

The second job runs whole while the first stands at a step, as in test_month_jobs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.ledgers import build_with, catalog_of
from support.s3_company import BUCKET, deliver, settings
from support.small_company import AUGUST, JULY, Company
from support.two_payers import two_payers
from test_month_jobs import SOME, job, published

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.command import build_parts
from pipelines.models.publish import plan
from pipelines.models.refresh import refresh_parts
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.lock import BuildBusy

ONE, OTHER = f"{JULY}/payer", f"{JULY}/other"
BY_SOURCE = {
    f"staging/stg_aws__{name}"
    for name in ("cur_combination", "cur_line_kind", "charge_kind", "billed_stretch", "pod_machine")
} | {"core/fct_charge"}


@pytest.fixture(autouse=True)
def fewer_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = catalog_of(SOME)
    monkeypatch.setattr("pipelines.models.build.load_catalog", lambda: catalog)


@pytest.fixture(scope="module")
def in_one_build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, list[str]]]:
    """What one build publishes of two payers."""
    return cache(lambda payers: published(load_settings(two_payers(tmp_path_factory.mktemp("one"), payers).config)))


@pytest.mark.parametrize(
    ("payers", "moment"),
    [("apart", "bill"), ("apart", "core/fct_charge"), ("shared", "staging/stg_aws__billed_stretch")],
)
def test_two_payers_built_side_by_side_are_published_as_by_one_build(
    payers: str, moment: str, tmp_path: Path, in_one_build: Callable[[str], dict[str, list[str]]]
) -> None:
    config = load_settings(two_payers(tmp_path, payers).config)
    seen: list[list[str]] = []
    done = job(config, ONE, moment, lambda: seen.append(job(config, OTHER)))
    # What is made is what lines of the bill are read for, and nothing that looks across payers but the stays of runs.
    assert {name for name in done if name.startswith(("staging/stg_aws", "core", "detail", "mart"))} == BY_SOURCE
    assert sorted(done) == sorted(seen[0])
    assert Warehouse(config).lake.publications.newest() is None
    assert published(config) == in_one_build(payers)


def test_a_job_reads_its_own_delivery_alone(tmp_path: Path) -> None:
    company = two_payers(tmp_path, "apart")
    # Nothing of the other payer's files can be read.
    for file in (company.root / "other" / "data").rglob("*.csv.gz"):
        file.write_bytes(b"not gzip")
    job(load_settings(company.config), ONE)
    assert [folder.name for folder in (company.warehouse / "raw").glob("*/2*/*")]
    assert not list((company.warehouse / "raw" / "other").glob("2*/[0-9a-f]*"))


def test_a_job_that_dies_leaves_the_other_unharmed(
    tmp_path: Path, in_one_build: Callable[[str], dict[str, list[str]]]
) -> None:
    config = load_settings(two_payers(tmp_path, "apart").config)

    def die() -> None:
        raise KeyboardInterrupt

    def killed() -> None:
        with pytest.raises(KeyboardInterrupt):
            job(config, OTHER, "staging/stg_aws__cur_line_kind", die)

    job(config, ONE, "staging/stg_aws__cur_combination", killed)
    job(config, OTHER)
    assert published(config) == in_one_build("apart")


def test_a_delivery_that_one_payer_restates_leaves_the_lines_of_the_other_alone(tmp_path: Path) -> None:
    config = load_settings(two_payers(tmp_path, "apart").config)
    names = [table.rpartition("/")[2] for table in BY_SOURCE]
    build_with(config, only=names)
    two_payers(tmp_path, "apart", rate="50.00")
    builder = Builder(Warehouse(config))
    with builder.lake.lock():
        made = list(builder.build_steps(builder.steps([JULY, AUGUST], names)))
    of_source = {(built.table, built.period): built.was_current for built in made if "/" in (built.period or "")}
    assert {part for (_, part), was_current in of_source.items() if not was_current} == {OTHER}
    assert not of_source["core/fct_charge", OTHER]
    assert {table for table, _ in of_source} == BY_SOURCE
    # A source that is configured no more takes its lines with it, and no others.
    company = Company(tmp_path, tmp_path / "events")
    company.config.write_text(company.config.read_text().partition('\n[[billing]]\nname = "other"')[0])
    builder = build_with(load_settings(company.config), only=names)
    assert builder.lake.periods("core/fct_charge") == [ONE, f"{AUGUST}/payer"]
    assert len(builder.lake.files("core/fct_charge", JULY)) == 1


def test_two_drivers_on_one_payers_month_are_one(tmp_path: Path) -> None:
    config = load_settings(two_payers(tmp_path, "apart").config)
    refused = []

    def rivals() -> None:
        for attempt in (lambda: job(config, ONE), lambda: job(config, JULY), lambda: build_with(config)):
            with pytest.raises(BuildBusy) as busy:
                attempt()
            refused.append(str(busy.value).partition(" is being built by process ")[0])

    job(config, ONE, "core/fct_charge", rivals)
    assert refused == [f"{JULY} of payer of {config.warehouse.location}"] * 3
    with pytest.raises(BuildBusy, match=rf"^{JULY} of "):
        job(config, JULY, "bill", lambda: job(config, OTHER))


def test_the_stays_of_a_month_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_settings(two_payers(tmp_path, "apart").config)
    sentences = []
    holding = Warehouse(config).lake.lock(f"{JULY}/_tables")

    def release(sentence: str) -> None:
        sentences.append(sentence)
        holding.__exit__(None, None, None)

    monkeypatch.setattr("pipelines.warehouse.lock.PAUSE", 0.01)
    holding.__enter__()
    builder = Builder(Warehouse(config))
    with builder.lake.lock(ONE):
        refresh_parts(builder, plan(builder.warehouse), [ONE], release)
    (sentence,) = sentences
    assert sentence.startswith(f"A table that all sources of {JULY} of {config.warehouse.location} share is being ")


@pytest.mark.parametrize(
    ("part", "known"),
    [
        ((JULY, "absent"), f"{JULY} of absent; choose a source of the month (other, payer)"),
        ((AUGUST, "other"), f"{AUGUST} of other; choose a source of the month (payer)"),
        (("2026-09", "payer"), f"2026-09/payer; choose a delivered month ({JULY}, {AUGUST})"),
    ],
)
def test_what_no_source_delivers_is_refused(part: tuple[str, str], known: str, tmp_path: Path) -> None:
    config = load_settings(two_payers(tmp_path, "apart").config)
    with pytest.raises(UsageError) as refused:
        build_parts(config, Console(), [part[0]], [part[1]])
    assert str(refused.value) == f"No billing source delivers {known}."


@pytest.mark.slow
def test_two_payers_are_built_side_by_side_on_s3(
    s3: Any, s3_endpoint: str, tmp_path: Path, in_one_build: Callable[[str], dict[str, list[str]]]
) -> None:
    company = two_payers(tmp_path, "apart")
    deliver(company, s3)
    for file in (path for path in (company.root / "other").rglob("*") if path.is_file()):
        s3.upload_file(str(file), BUCKET, file.relative_to(company.root).as_posix())
    payer = settings(company, s3_endpoint).billing[0]
    other = payer.model_copy(update={"name": "other", "location": payer.location.replace("export", "other")})
    config = load_settings(company.config).model_copy(update={"billing": (payer, other)})
    job(config, ONE, "staging/stg_aws__charge_kind", lambda: job(config, OTHER))
    with pytest.raises(BuildBusy, match=rf"^{JULY} of payer of s3"):
        job(config, ONE, "bill", lambda: job(config, JULY))
    assert published(config) == in_one_build("apart")


def test_parts_of_a_table_are_delta_partitions_of_month_and_source(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    config = load_settings(two_payers(tmp_path, "apart").config)
    builder = build_with(config, only=["fct_charge"])
    lake: Lake = builder.lake
    assert lake.periods("core/fct_charge") == [OTHER, ONE, f"{AUGUST}/payer"]
    table = DeltaTable(tmp_path / "warehouse" / "tables" / "core" / "fct_charge")
    assert table.metadata().partition_columns == ["billing_period", "source_name"]
    assert len(table.file_uris()) == 3
