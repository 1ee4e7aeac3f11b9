"""Sends notifications of publications and failed builds; off where no channel is configured."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from pipelines.config.settings import load_settings
from pipelines.defs.jobs import REFRESH
from pipelines.notify.news import News
from pipelines.notify.send import send_news

# Older failures are not reported by a sensor that was just switched on.
_RECENT = timedelta(days=2)


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
