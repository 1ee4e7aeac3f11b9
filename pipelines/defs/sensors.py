"""Tells people what a publication or a failed build has to tell; off where the configuration names nobody to tell."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from pipelines.config.settings import load_settings
from pipelines.defs.jobs import REFRESH
from pipelines.notify.news import News
from pipelines.notify.send import tell

# A failure of days ago is no news to a sensor that was just switched on.
_RECENT = timedelta(days=2)


def notify_sensor(is_on: bool) -> dg.SensorDefinition:
    """The sensor, running from the start where somebody is to be told."""

    @dg.sensor(
        name="notifications",
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.RUNNING if is_on else dg.DefaultSensorStatus.STOPPED,
        description="Reports of closed months, failed checks and builds, anomalies and budgets, each told once.",
    )
    def notifications(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        settings = load_settings()
        if not settings.notify.channels:
            return dg.SkipReason("The configuration names nobody to tell.")
        return dg.SkipReason(str(tell(settings, context.log.info, list(failed_builds(context.instance)))))

    return notifications


def failed_builds(instance: dg.DagsterInstance) -> Iterator[News]:
    """What runs of the main job failed of, in the words of the steps that failed first."""
    recent = dg.RunsFilter(
        job_name=REFRESH.name,
        statuses=[dg.DagsterRunStatus.FAILURE],
        updated_after=datetime.now(UTC) - _RECENT,
    )
    for run in instance.get_runs(recent, limit=20):
        logged = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        said = [_words(entry.dagster_event) for entry in logged if entry.dagster_event]
        yield News(f"failure/{run.run_id}", "failure", said[0] if said else "The build ended before any step failed.")


def _words(event: dg.DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    # Whatever it says was written for programmers, and may hold anything.
    kind = failure.error.cls_name if failure.error else "an unknown error"
    return f"The step {event.step_key} failed of {kind}; Dagster has its log."
