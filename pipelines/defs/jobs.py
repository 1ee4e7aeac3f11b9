"""The main job, the schedule that runs it when something changed, and the sensor that sends notifications of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from pipelines.config.settings import load_settings
from pipelines.defs.steps import month_range_tags
from pipelines.models.publish import plan
from pipelines.models.warehouse import Warehouse
from pipelines.notify.news import News
from pipelines.notify.send import send_news

RUN_KEY = "dagster/run_key"
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]

# Older failures are not reported by a sensor that was just switched on.
_RECENT = timedelta(days=2)

# In process: each step of the multiprocess executor pays seconds of imports.
REFRESH = dg.define_asset_job(
    "refresh",
    selection=dg.AssetSelection.all(),
    executor_def=dg.in_process_executor,
    description="Bring every table of the changed billing months up to date, check them and publish.",
)


def refresh_schedule(cron: str) -> dg.ScheduleDefinition:
    """A schedule that looks at the sources and asks for one run over the months that changed, if any did.

    AWS rewrites the running month several times a day, the month before for about two weeks, and closed months
    when refunds, credits or tag backfills arrive; a changed manifest of any month is picked up.
    """

    @dg.schedule(
        name="daily_refresh",
        job=REFRESH,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def daily_refresh(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        planned = plan(Warehouse(load_settings()))
        if not planned.months:
            return dg.SkipReason("No source has delivered a billing month yet.")
        if planned.is_current:
            return dg.SkipReason("Nothing changed since the newest publication.")
        # The key identifies requests within one tick; runs of earlier ticks are looked up here.
        key = f"{planned.publication.number if planned.publication else 0}-{planned.digest}"
        under_way = dg.RunsFilter(tags={RUN_KEY: key}, statuses=UNFINISHED)
        if context.instance.get_runs(under_way, limit=1):
            return dg.SkipReason("A run for these changes is under way.")
        return dg.RunRequest(run_key=key, tags=month_range_tags(planned.requested_months))

    return daily_refresh


def notify_sensor(is_on: bool) -> dg.SensorDefinition:
    """The sensor, running from the start where a channel is configured."""

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


def failed_builds(instance: dg.DagsterInstance) -> Iterator[News]:
    """The failed runs of the main job, each with the error of the step that failed first."""
    recent = dg.RunsFilter(
        job_name=REFRESH.name,
        statuses=[dg.DagsterRunStatus.FAILURE],
        updated_after=datetime.now(UTC) - _RECENT,
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
