"""The main job, run in process: months, checks that stop it, and what the schedule asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.bills import write_events
from support.lazily import Lazily
from support.ledgers import catalog_of, publish_tables
from support.small_company import AUGUST, JULY, Company, found

from pipelines.base.errors import UnreachableError
from pipelines.config.settings import load_settings
from pipelines.models.catalog import BILLS, RAW_TABLES
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Publication

dg, definitions = Lazily("dagster"), Lazily("pipelines.definitions")
assets, steps = Lazily("pipelines.defs.assets"), Lazily("pipelines.defs.steps")

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
OVERBILLED = "an_instance_is_billed_for_more_than_the_hour"
RESOURCE_HOUR = "core/fct_resource_hourly"
# Two marts and what they rest on are a third of all tables, of every layer. The daemon of test_services.py
# runs the whole graph, and so does a slow test.
MARTS = ("mart_run_cost", "mart_invoice_reconciliation_monthly")
ASSEMBLED: dict[int, dg.Definitions] = {}


@pytest.fixture(scope="module")
def published_marts(once: Callable[[str, Callable[[Path], object]], Path]) -> Company:
    """The small company, with just these marts published."""
    root = once("two-marts", lambda root: publish_tables(found(root).config, MARTS))
    return Company(root, root / "events")


def assembled_of_marts(patch: pytest.MonkeyPatch) -> None:
    """Have the product know just these marts and what they rest on."""
    # The definitions of the whole product are assembled before it knows less.
    assert definitions.defs
    catalog = catalog_of(MARTS)
    for module in ("defs.assets", "defs.jobs", "models.build"):
        patch.setattr(f"pipelines.{module}.load_catalog", lambda: catalog)


@pytest.fixture
def company(published_marts: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Company:
    assembled_of_marts(monkeypatch)
    return published_marts.copy(tmp_path)


@pytest.fixture
def whole_company(built_company: Company, tmp_path: Path) -> Company:
    return built_company.copy(tmp_path)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def refresh(
    company: Company, instance: dg.DagsterInstance, *months: str, only: Sequence[str] = ()
) -> dg.ExecuteInProcessResult:
    """Materialize all assets over the months from the first to the last of `months`; without any, run the main job.

    Where `only` names tables, no other assets are materialized.
    """
    if not months:
        job, tags = definitions.defs.resolve_job_def("refresh"), {}
    else:
        job, tags = assembled(company).resolve_implicit_global_asset_job_def(), month_range_tags(*months)
    keys = [steps.asset_key(table) for table in only]
    return execute(job, company, instance, tags=tags, asset_selection=keys or None)


def execute(
    job: dg.JobDefinition, company: Company, instance: dg.DagsterInstance, **options: Any
) -> dg.ExecuteInProcessResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINLEDGER_CONFIG", str(company.config))
        return job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False, **options)


def assembled(company: Company) -> dg.Definitions:
    """The definitions as a company is configured, once for all companies of as many tables: of equal sources."""
    tables = len(assets.load_catalog().ordered)
    if tables not in ASSEMBLED:
        ASSEMBLED[tables] = definitions.assemble(load_settings(company.config))
    return ASSEMBLED[tables]


def month_range_tags(*months: str) -> dict[str, str]:
    """Run tags that ask for one run over the months from the first to the last."""
    start, end = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
    return {start: min(months), end: max(months)}


def published(company: Company) -> Publication:
    publication = Warehouse(load_settings(company.config)).lake.publications.newest()
    assert publication is not None
    return publication


def materialised(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}


def metadata(result: dg.ExecuteInProcessResult, key: str) -> dict[str, object]:
    """The metadata of an asset's newest materialisation in a run."""
    events = [e for e in result.get_asset_materialization_events() if e.asset_key.to_user_string() == key]
    return {name: value.value for name, value in events[-1].materialization.metadata.items()}


@pytest.fixture(scope="module")
def july(published_marts: Company, tmp_path_factory: pytest.TempPathFactory) -> dg.ExecuteInProcessResult:
    """The main job over a July that was restated: two hours of one instance, now at 50.00."""
    company = published_marts.copy(tmp_path_factory.mktemp("july"))
    company.deliver(JULY, "50.00")
    with dg.DagsterInstance.ephemeral() as instance, pytest.MonkeyPatch.context() as patch:
        assembled_of_marts(patch)
        return refresh(company, instance, JULY)


def below(key: dg.AssetKey) -> set[str]:
    """An asset and everything that rests on it."""
    graph, found, waiting = definitions.defs.resolve_asset_graph(), set(), [key]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += graph.get(one).child_keys
    return {one.to_user_string() for one in found}


@pytest.mark.slow
def test_a_run_over_a_range_of_months_brings_all_up_to_date(
    whole_company: Company, instance: dg.DagsterInstance
) -> None:
    whole_company.deliver(JULY, "50.00")
    whole_company.deliver(AUGUST, "20.00")
    result = refresh(whole_company, instance, JULY, AUGUST)
    assert result.success
    assert materialised(result) == {
        key.to_user_string() for key in definitions.defs.resolve_asset_graph().get_all_asset_keys()
    }
    for key in (["raw", "aws_cur_line_item"], ["core", "fct_ledger_piece"]):
        assert instance.get_materialized_partitions(dg.AssetKey(key)) == {JULY, AUGUST}
    assert published(whole_company).number == 2


def test_an_asset_reports_how_many_rows_and_dollars_it_holds(july: dg.ExecuteInProcessResult) -> None:
    bill = metadata(july, "raw/aws_cur_line_item")
    assert bill["dagster/row_count"] == 2
    pieces = metadata(july, "core/fct_ledger_piece")
    assert (pieces["effective_cost_usd"], pieces["unchanged"]) == ("100.00 USD", 0)
    # A mart holds all months: two hours at 50.00 and four at 21.50.
    runs = metadata(july, "marts/mart_run_cost")
    assert (runs["dagster/row_count"], runs["effective_cost_usd"]) == (2, "186.00 USD")
    assert metadata(july, "publication")["publication"] == 2


def test_an_identity_shows_its_amounts_also_when_it_holds(july: dg.ExecuteInProcessResult) -> None:
    mart = dg.AssetKey(["marts", "mart_invoice_reconciliation_monthly"])
    (check,) = [c for c in july.get_asset_check_evaluations() if (c.asset_key, c.check_name) == (mart, "contract")]
    assert check.passed
    figures = check.metadata["figures"].value["bill_and_ledger_differ_by_more_than_a_cent"]
    # July is two hours at 50.00, August four at 21.50; the newest month first.
    assert [row["billed_cost_usd"] for row in figures] == ["86.0000000000", "100.0000000000"]


def test_a_run_with_nothing_new_publishes_nothing_and_is_not_reported_again(
    company: Company, instance: dg.DagsterInstance, report: Callable[[Company], str]
) -> None:
    result = refresh(company, instance, JULY, AUGUST)
    assert result.success
    assert metadata(result, "publication")["publication"] == 1
    assert metadata(result, "core/fct_ledger_piece")["unchanged"] == 2
    assert published(company).number == 1
    assert report(company) == "Publication 1 is reported."


def test_a_run_without_months_does_what_the_command_line_does(company: Company, instance: dg.DagsterInstance) -> None:
    company.deliver(AUGUST, "20.00")
    result = refresh(company, instance)
    assert result.success
    assert metadata(result, "publication")["publication"] == 2
    assert materialised(result) == {
        key.to_user_string() for key in assembled(company).resolve_asset_graph().get_all_asset_keys()
    }
    for key in (["raw", "aws_cur_line_item"], ["core", "fct_ledger_piece"]):
        assert instance.get_materialized_partitions(dg.AssetKey(key)) == {JULY, AUGUST}
    assert metadata(result, "marts/mart_run_cost")["effective_cost_usd"] == "190.08 USD"
    again = refresh(company, instance)
    assert again.success
    assert materialised(again) == set()


def test_a_run_of_a_month_builds_it_and_the_main_job_publishes_it(
    company: Company, instance: dg.DagsterInstance
) -> None:
    company.deliver(AUGUST, "20.00")
    month = assembled(company).resolve_job_def("month")
    assert execute(month, company, instance, partition_key=AUGUST).success
    assert published(company).number == 1
    builder = steps.Ledger(load_settings(company.config)).builder
    with builder.lake.lock():
        (built,) = builder.build_parts("fct_ledger_piece", [AUGUST])
    assert built.was_current
    assert refresh(company, instance).success
    assert published(company).number == 2

    absent = execute(month, company, instance, partition_key="2026-09")
    (failed,) = absent.get_step_failure_events()
    message = failed.step_failure_data.user_failure_data.description
    assert message == "No billing source delivers 2026-09; choose a delivered month (2026-07, 2026-08)."


def test_the_job_of_a_source_makes_what_its_delivery_is_read_for(
    company: Company, instance: dg.DagsterInstance
) -> None:
    company.deliver(AUGUST, "20.00")
    job = assembled(company).resolve_job_def("source_month")
    keys = [dg.MultiPartitionKey({"month": month, "source": "payer"}) for month in (AUGUST, "2026-09")]
    assert keys[0] in job.partitions_def.get_partition_keys(datetime(2026, 9, 30, tzinfo=UTC))
    assert execute(job, company, instance, partition_key=keys[0]).success
    builder = steps.Ledger(load_settings(company.config)).builder
    with builder.lake.lock():
        (built,) = builder.build_parts("fct_charge", [f"{AUGUST}/payer"])
    assert built.was_current
    assert published(company).number == 1
    absent = execute(job, company, instance, partition_key=keys[1])
    (failed,) = absent.get_step_failure_events()
    message = failed.step_failure_data.user_failure_data.description
    assert message == "No billing source delivers 2026-09/payer; choose a delivered month (2026-07, 2026-08)."


def test_a_failing_check_of_the_main_job_is_shown_with_its_asset(
    company: Company, instance: dg.DagsterInstance
) -> None:
    company.overbill()
    result = refresh(company, instance)
    assert not result.success
    (failed,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert (failed.asset_key, failed.check_name) == (dg.AssetKey(RESOURCE_HOUR.split("/")), "contract")
    # What failed, and the advice of its contract.
    assert failed.description.startswith(OVERBILLED.replace("_", " "))
    assert failed.description.endswith(" Owner: ml-finops.")
    (step,) = result.get_step_failure_events()
    assert OVERBILLED.replace("_", " ") in step.step_failure_data.user_failure_data.description
    assert published(company).number == 1


def test_a_second_run_waits_for_the_first(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.warehouse.lock.PAUSE", 0.01)
    settings, notes = load_settings(company.config), []
    with ExitStack() as first:
        first.enter_context(Warehouse(settings).lake.lock())

        def note(sentence: str) -> None:
            notes.append(sentence)
            first.close()

        with steps.step(steps.Ledger(settings, note)) as planned:
            assert planned.is_current
    (sentence,) = notes
    assert sentence.startswith(f"{company.warehouse} is being built by process ")


def test_partitions_are_the_months_of_the_bill(company: Company) -> None:
    assert steps.billing_months(load_settings(company.config)).get_partition_keys()[:2] == [JULY, AUGUST]


def test_partitions_start_now_where_no_bill_is_read_yet(tmp_path: Path) -> None:
    (tmp_path / "trainledger.toml").write_text(
        f'[warehouse]\nlocation = "w"\n[[billing]]\nname = "b"\nlocation = "{tmp_path}/absent"\n'
    )
    for settings in (None, load_settings(tmp_path / "trainledger.toml")):
        assert steps.billing_months(settings).get_partition_keys() == [f"{datetime.now(UTC):%Y-%m}"]


@pytest.fixture
def report(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Callable[[Company], str]:
    """Have the sensor look at a company's publications, as the daemon does; returns why it had nothing to report."""

    def evaluate(company: Company) -> str:
        monkeypatch.setenv("TRAINLEDGER_CONFIG", str(company.config))
        sensor = definitions.defs.resolve_sensor_def("command_line_builds")
        result = sensor.evaluate_tick(dg.build_sensor_context(instance, definitions=definitions.defs))
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
        return str(result.skip_message)

    return evaluate


def test_a_build_of_the_command_line_is_reported_once(
    whole_company: Company, instance: dg.DagsterInstance, report: Callable[[Company], str]
) -> None:
    report(whole_company)
    keys = definitions.defs.resolve_asset_graph().get_all_asset_keys()
    records = instance.get_asset_records(list(keys))
    assert {one.asset_entry.asset_key for one in records if one.asset_entry.last_materialization} == keys
    runs = instance.get_latest_materialization_event(dg.AssetKey(["marts", "mart_run_cost"]))
    # Two hours at 55.04 and four at 21.50.
    assert runs.asset_materialization.metadata["effective_cost_usd"].value == "196.08 USD"
    pieces = dg.AssetKey(["core", "fct_ledger_piece"])
    assert instance.get_materialized_partitions(pieces) == {JULY, AUGUST}
    assert report(whole_company) == "Publication 1 is reported."

    whole_company.deliver(AUGUST, "20.00")
    publish_tables(whole_company.config, ["fct_ledger_piece"])
    report(whole_company)
    (newest, *_) = instance.fetch_materializations(pieces, limit=1).records
    assert newest.partition_key == AUGUST
    assert len(instance.fetch_materializations(pieces, limit=10).records) == 3


def test_a_month_that_no_source_delivers_is_refused_in_words(company: Company, instance: dg.DagsterInstance) -> None:
    result = refresh(company, instance, "2026-09", only=BILLS)
    assert not result.success
    (failed,) = [e for e in result.get_step_failure_events() if e.step_key == "bill"]
    message = failed.step_failure_data.user_failure_data.description
    assert message == "No billing source delivers 2026-09; choose a delivered month (2026-07, 2026-08)."


def test_a_month_is_materialized_after_its_source_was_renamed(company: Company, instance: dg.DagsterInstance) -> None:
    """The step holds the month whose former source it takes out of the tables."""
    renamed = company.config.read_text().replace('name = "payer"', 'name = "acme"')
    company.config.write_text(renamed)
    assert refresh(company, instance, JULY, only=BILLS).success
    assert not Warehouse(load_settings(company.config)).lake.periods("core/fct_charge")


def test_a_failing_error_check_stops_what_is_below_and_the_publication(
    company: Company, instance: dg.DagsterInstance
) -> None:
    before, copy = published(company), (company.warehouse / "marts.duckdb").read_bytes()
    company.overbill()
    company.deliver(AUGUST, "20.00")
    result = refresh(company, instance, JULY, AUGUST)
    assert not result.success

    (failed,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert (failed.asset_key, failed.check_name) == (dg.AssetKey(RESOURCE_HOUR.split("/")), "contract")
    assert failed.severity == dg.AssetCheckSeverity.ERROR
    (check,) = failed.metadata["failed_checks"].value
    assert (check["check"], check["failing_row_count"]) == (OVERBILLED, 2)
    # Both lines of the hour from 10:00 on, an hour each.
    assert [(row["resource_id"], row["billed_hours"]) for row in check["failing_rows"]] == [("i-gpu", 2.0)] * 2

    stopped = below(dg.AssetKey(RESOURCE_HOUR.split("/")))
    assert {"marts/mart_run_cost", "publication"} < stopped
    assert materialised(result).isdisjoint(stopped)
    # What does not rest on it went on.
    assert "staging/stg_aws__invoice_total" in materialised(result)
    assert published(company) == before
    assert (company.warehouse / "marts.duckdb").read_bytes() == copy


def test_a_failure_is_one_sentence_not_tried_again(
    published_marts: Company, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembled_of_marts(monkeypatch)
    company = published_marts.copy(tmp_path, events=True)
    company.events.rename(tmp_path / "moved")
    result = refresh(company, instance, JULY, AUGUST, only=RAW_TABLES)
    (failed,) = result.get_step_failure_events()
    failure = failed.step_failure_data.user_failure_data
    assert str(company.events) in failure.description and "\n" not in failure.description
    assert failure.metadata["exit_code"].value == 3
    assert not any(event.is_step_up_for_retry for event in result.all_events)


def test_a_source_that_does_not_answer_is_tried_again_and_reported_in_words(company: Company) -> None:
    with pytest.raises(dg.Failure) as failed, steps.step(steps.Ledger(load_settings(company.config))):
        raise UnreachableError("s3://bill did not answer.")
    assert (failed.value.description, failed.value.allow_retries) == ("s3://bill did not answer.", True)


@pytest.fixture(scope="module")
def on_disk() -> Iterator[dg.DagsterInstance]:
    """An instance on disk, as a schedule has one."""
    with dg.instance_for_test() as made:
        yield made


@pytest.fixture
def lasting(on_disk: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """The instance on disk, without runs."""
    yield on_disk
    on_disk.wipe()


@pytest.fixture
def tick(lasting: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Callable[[Company], dg.RunRequest | str]:
    """What the schedule asks for, or why it asks for nothing."""

    def evaluate(company: Company) -> dg.RunRequest | str:
        monkeypatch.setenv("TRAINLEDGER_CONFIG", str(company.config))
        schedule = definitions.defs.resolve_schedule_def("daily_refresh")
        with dg.build_schedule_context(lasting, datetime(2026, 9, 30, 5, 30, tzinfo=UTC)) as context:
            evaluated = schedule.evaluate_tick(context)
        return evaluated.run_requests[0] if evaluated.run_requests else str(evaluated.skip_message)

    return evaluate


def months(request: dg.RunRequest | str) -> tuple[str, str]:
    assert isinstance(request, dg.RunRequest), request
    return tuple(request.tags["trainledger/months"].split("..."))


def test_the_schedule_asks_for_nothing_when_nothing_changed(company: Company, tick) -> None:
    assert tick(company) == "Nothing changed since the newest publication."


def test_the_schedule_asks_for_the_months_that_changed(company: Company, tick) -> None:
    company.deliver(AUGUST, "20.00")
    assert months(tick(company)) == (AUGUST, AUGUST)
    company.deliver(AUGUST, "21.50")
    # July is long closed by the end of September, and restated all the same.
    company.deliver(JULY, "50.00")
    assert months(tick(company)) == (JULY, JULY)


def test_the_schedule_asks_for_every_month_when_runs_changed(published_marts: Company, tmp_path: Path, tick) -> None:
    assert months(tick(published_marts.copy(tmp_path, events=True))) == (JULY, AUGUST)


def test_the_schedule_asks_for_every_month_while_a_run_is_open(published_marts: Company, tmp_path: Path, tick) -> None:
    """Its end is where its instances leave the bill, in whichever month."""
    company = published_marts.copy(tmp_path, events=True)
    write_events(
        company.events, [{"event": "run_started", "run_id": "open", "at": "2026-07-14T10:00:00Z"}], "open.jsonl"
    )
    publish_tables(company.config, ["stg_tracker__run"])
    company.deliver(AUGUST, "20.00")
    assert months(tick(company)) == (JULY, AUGUST)


def test_the_schedule_waits_for_the_run_it_requested(company: Company, lasting: dg.DagsterInstance, tick) -> None:
    company.deliver(AUGUST, "20.00")
    request = tick(company)

    @dg.job
    def standing_for_refresh() -> None: ...

    run = lasting.create_run_for_job(
        standing_for_refresh, tags={"dagster/run_key": request.run_key}, status=dg.DagsterRunStatus.STARTED
    )
    assert tick(company) == "A run for these changes is under way."
    # What is delivered meanwhile gets a run of its own.
    company.deliver(JULY, "50.00")
    assert tick(company).run_key != request.run_key
    company.deliver(JULY, "55.04")
    # A run that failed is requested again.
    lasting.report_run_failed(run)
    assert tick(company).run_key == request.run_key


def test_the_schedule_asks_again_for_what_was_published_before(company: Company, tick) -> None:
    company.deliver(AUGUST, "20.00")
    first = tick(company)
    publish_tables(company.config, ["fct_charge"])
    company.deliver(AUGUST, "21.50")
    publish_tables(company.config, ["fct_charge"])
    company.deliver(AUGUST, "20.00")
    assert tick(company).run_key != first.run_key


def test_the_schedule_asks_for_a_run_that_reports_what_it_cannot_read(company: Company, tick) -> None:
    """A failed tick would be no run: it is not tried again, and no one is notified."""
    company.config.write_text(company.config.read_text() + '\n[[billing]]\nname = "b"\nlocation = "absent"\n')
    assert tick(company).run_key == "unread"


def test_the_schedule_waits_for_a_first_delivery(tmp_path: Path, tick) -> None:
    (tmp_path / "trainledger.toml").write_text('[warehouse]\nlocation = "warehouse"\n')
    assert tick(Company(tmp_path, tmp_path)) == "No source has delivered a billing month yet."
