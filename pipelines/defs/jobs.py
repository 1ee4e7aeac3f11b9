"""The main job, its schedule, which runs it when something changed, and sensors that notify and report publications."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, product

import dagster as dg

from pipelines.base.errors import TrainledgerError
from pipelines.config.settings import Schedule, Settings, load_settings
from pipelines.defs.assets import PUBLICATION, built_metadata, check_results
from pipelines.defs.steps import PATIENCE, POOL, Ledger, asset_key, step
from pipelines.models.build import FailedChecks
from pipelines.models.built import BuildRecords, Built
from pipelines.models.catalog import BILLS, WRITTEN_RAW, Model, load_catalog
from pipelines.models.publish import plan
from pipelines.models.refresh import refresh, refresh_parts
from pipelines.models.warehouse import Warehouse
from pipelines.notify.news import News
from pipelines.notify.send import send_news
from pipelines.warehouse.lake import Lake
from pipelines.warehouse.part import month_of, part_of
from pipelines.warehouse.publication import Publication

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation

RUN_KEY = "dagster/run_key"
# The months that a scheduled run looks at, for who reads the list of runs.
MONTHS = "trainledger/months"
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]

# Older failures are not reported by a sensor that was just switched on.
_RECENT = timedelta(days=2)


@dg.op(pool=POOL, retry_policy=PATIENCE, out=dg.Out(dg.Nothing))
def refresh_all(context: dg.OpExecutionContext, ledger: dg.ResourceParam[Ledger]) -> Iterator[Event]:
    """What `trainledger build` does, with its tables and checks as events of their assets."""
    with step(ledger) as planned:
        if planned.is_current:
            context.log.info("Nothing changed since the newest publication.")
            return
        try:
            published = refresh(ledger.builder, planned, lambda what, month: context.log.info(f"{what} {month}"))
        except FailedChecks as failed:
            yield from check_events(load_catalog()[failed.built.table.rpartition("/")[2]], [failed.built])
            raise
    known = reported_publication(context.instance)
    yield from publication_events(ledger.builder.warehouse, published, known)


# One step: a partitioned asset cannot run without a month, and every step of the graph pays for its own events.
@dg.job(
    name="refresh",
    executor_def=dg.in_process_executor,
    description="Bring every table of the changed billing months up to date, check them and publish.",
)
def refresh_job() -> None:
    refresh_all()


@dg.op(retry_policy=PATIENCE, out=dg.Out(dg.Nothing))
def refresh_part(context: dg.OpExecutionContext, ledger: dg.ResourceParam[Ledger]) -> None:
    """What `trainledger build --month` does, also with `--source`."""
    key = context.partition_key
    part = part_of(**key.keys_by_dimension) if isinstance(key, dg.MultiPartitionKey) else key
    with step(ledger, part) as planned:
        refresh_parts(ledger.builder, planned, [part], ledger.waiting, lambda what, of: context.log.info(what))


def part_jobs(months: dg.PartitionsDefinition, sources: dg.PartitionsDefinition) -> list[dg.JobDefinition]:
    """The jobs of one month, and of one source's month: several run at a time, as `max_concurrent_runs` allows."""

    @dg.job(
        partitions_def=months,
        executor_def=dg.in_process_executor,
        description="Build the tables of one billing month, next to runs of other months; `refresh` then publishes.",
    )
    def month() -> None:
        refresh_part()

    @dg.job(
        partitions_def=dg.MultiPartitionsDefinition({"month": months, "source": sources}),
        executor_def=dg.in_process_executor,
        description="Build the tables that are made from what one billing source delivers of a month, next to runs of "
        "other months and sources; `refresh` makes the rest and publishes.",
    )
    def source_month() -> None:
        refresh_part()

    return [month, source_month]


def refresh_schedule(settings: Settings | None) -> dg.ScheduleDefinition:
    """A schedule that looks at the sources and asks for one run over the months that changed, if any did.

    AWS rewrites the running month several times a day, the month before for about two weeks, and closed months
    when refunds, credits or tag backfills arrive; a changed manifest of any month is picked up.
    """

    @dg.schedule(
        name="daily_refresh",
        job=refresh_job,
        cron_schedule=(settings.schedule if settings else Schedule()).cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def daily_refresh(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        warehouse = Warehouse(load_settings())
        try:
            planned = plan(warehouse)
        except TrainledgerError:
            # The run tries again, and what is wrong is then reported as of any failed build.
            key, tags = "unread", {}
        else:
            if not planned.months:
                return dg.SkipReason("No source has delivered a billing month yet.")
            if planned.is_current:
                return dg.SkipReason("Nothing changed since the newest publication.")
            key = f"{planned.publication.number if planned.publication else 0}-{planned.digest}"
            months = planned.requested_months
            tags = {MONTHS: f"{min(months)}...{max(months)}"}
        # The key identifies requests within one tick; runs of earlier ticks are looked up here.
        under_way = dg.RunsFilter(tags={RUN_KEY: key}, statuses=UNFINISHED)
        if context.instance.get_runs(under_way, limit=1):
            return dg.SkipReason("A run for these changes is under way.")
        return dg.RunRequest(run_key=key, tags=tags)

    return daily_refresh


def notify_sensor(settings: Settings | None) -> dg.SensorDefinition:
    """The sensor, running from the start where a channel is configured."""
    is_on = settings is not None and bool(settings.notify.channels)

    @dg.sensor(
        name="notifications",
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.RUNNING if is_on else dg.DefaultSensorStatus.STOPPED,
        description="Reports of closed months, failed checks and builds, anomalies and budgets, each sent once.",
    )
    def notifications(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        settings = load_settings()
        if not settings.notify.channels:
            return dg.SkipReason("No notification channel is configured.")
        return dg.SkipReason(str(send_news(settings, context.log.info, list(failed_builds(context.instance)))))

    return notifications


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports the tables and checks of a publication that no run of Dagster made.",
)
def command_line_builds(context: dg.SensorEvaluationContext) -> dg.SkipReason | dg.SensorResult:
    """What `trainledger build` published, so that the graph shows it."""
    warehouse = Warehouse(load_settings())
    published = warehouse.lake.publications.newest()
    if not published:
        return dg.SkipReason("Nothing is published yet.")
    number = reported_publication(context.instance)
    if number == published.number:
        return dg.SkipReason(f"Publication {number} is reported.")
    if context.instance.get_runs(dg.RunsFilter(statuses=UNFINISHED), limit=1):
        return dg.SkipReason("A run is under way and reports what it publishes.")
    return dg.SensorResult(asset_events=list(publication_events(warehouse, published, number)))


def reported_publication(instance: dg.DagsterInstance) -> int | None:
    """The number of the publication that an instance knows; None before the first."""
    event = instance.get_latest_materialization_event(PUBLICATION)
    made = event.asset_materialization if event else None
    return int(str(made.metadata["publication"].value)) if made else None


def publication_events(warehouse: Warehouse, published: Publication, number: int | None) -> Iterator[Event]:
    """A materialization of every table, of monthly ones for each month that differs from publication `number`.

    The checks of a table follow it, and the publication comes last.
    """
    known = next((one for one in warehouse.lake.publications.all() if one.number == number), None)
    lake, records = warehouse.as_published(published).lake, BuildRecords(warehouse.store)
    seen = {d["fingerprint"] for d in known.inputs["deliveries"]} if known else set()
    months = {d["billing_period"] for d in published.inputs["deliveries"] if d["fingerprint"] not in seen}
    for table, month in product(BILLS, sorted(months)):
        yield dg.AssetMaterialization(asset_key(table), partition=month)
    for key in WRITTEN_RAW:
        yield dg.AssetMaterialization(key.split("/"))
    for model in load_catalog().ordered:
        if not model.stored:
            yield dg.AssetMaterialization(asset_key(model.name), metadata={"computed": "where it is read"})
        elif model.key in published.tables:
            built = list(_built(model, lake, records, known))
            for month, of_month in groupby(built, lambda made: made.period and month_of(made.period)):
                yield dg.AssetMaterialization(
                    asset_key(model.name), partition=month, metadata=built_metadata(list(of_month))
                )
            yield from check_events(model, built)
    yield dg.AssetMaterialization(PUBLICATION, metadata={"publication": published.number})


def check_events(model: Model, built: Sequence[Built]) -> Iterator[dg.AssetCheckEvaluation]:
    """The results of `check_results` as events that need no step of the asset."""
    for result in check_results(model, built):
        yield dg.AssetCheckEvaluation(
            asset_key=asset_key(model.name),
            check_name=str(result.check_name),
            passed=result.passed,
            severity=result.severity,
            description=result.description,
            metadata=result.metadata,
        )


def _built(model: Model, lake: Lake, records: BuildRecords, known: Publication | None) -> Iterator[Built]:
    """What a whole table came to, or each month of it that is new; one without its record is left out."""
    seen = {*known.tables.get(model.key, {"files": []})["files"]} if known else set()
    for period in [None] if model.grain == "whole" else lake.periods(model.key):
        fingerprint = lake.fingerprint(model.key, period)
        is_new = period is None or not any(name.startswith(f"{fingerprint}-") for name in seen)
        if fingerprint and is_new and (made := records.find(model.key, period, fingerprint)):
            yield made


def failed_builds(instance: dg.DagsterInstance) -> Iterator[News]:
    """The failed runs of the main job, each with the error of the step that failed first."""
    recent = dg.RunsFilter(
        job_name=refresh_job.name, statuses=[dg.DagsterRunStatus.FAILURE], updated_after=datetime.now(UTC) - _RECENT
    )
    for run in instance.get_runs(recent, limit=20):
        logged = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        errors = [_error_of(entry.dagster_event) for entry in logged if entry.dagster_event]
        yield News(f"failure/{run.run_id}", "failure", next(iter(errors), "The build ended before a step failed."))


def _error_of(event: dg.DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    # Its message was written for programmers and may contain anything.
    kind = failure.error.cls_name if failure.error else "an unknown error"
    return f"The step {event.step_key} failed with {kind}; Dagster has its log."
